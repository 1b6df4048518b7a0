// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "study/cluster.h"

struct progress {
	const struct gp_cluster *cl;
	size_t row, nrows;
};

static void show_progress(void *arg, uint64_t now_ns)
{
	const struct progress *p = arg;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\rsimulating: row %zu of %zu, %3.0f %% ", p->row + 1, p->nrows,
		100 * (double)now_ns / (double)p->cl->scenario.duration_ns);
	if (now_ns == p->cl->scenario.duration_ns)
		fprintf(stderr, "\r\033[K");
	fflush(stderr);
}

static size_t plan(const struct gp_cluster *cl, struct gp_cluster_row *rows)
{
	size_t n = 0;

	for (uint32_t c = 0; c < cl->scenario.nconfigs; c++) {
		const struct gp_config config = cl->scenario.configs[c];
		uint32_t placements = config.kind == GP_CONFIG_EXCLUSIVE ? 1 : cl->nplacements;

		for (uint32_t p = 0; p < placements; p++)
			rows[n++] =
				(struct gp_cluster_row){ .config = config, .placement = cl->placements[p] };
	}
	return n;
}

static int complain(const struct gp_cluster *cl, const struct gp_cluster_row *row, int error,
		    struct gp_diag *diag)
{
	const struct gp_place at = { .file = cl->scenario.name, .diag = diag };
	char text[GP_SCENARIO_NAME];

	(void)gp_config_text(&row->config, text);
	if (error == -ECHILD)
		return gp_complain(&at, "a process of the row %s %s died; see dmesg, or use fewer by --jobs",
				   text, row->placement->name);
	return gp_complain(&at, "the row %s %s failed: %s", text, row->placement->name, strerror(-error));
}

int gp_cluster_rows_run(const struct gp_cluster *cl, uint32_t jobs, struct gp_cluster_row **ret,
			size_t *ret_n, struct gp_diag *diag)
{
	struct progress progress = { .cl = cl };
	struct gp_cluster_opts opts = { .jobs = jobs, .progress = show_progress, .arg = &progress };
	struct gp_cluster_row *rows = calloc((size_t)GP_MAX_CONFIGS * GP_MAX_PLACEMENTS, sizeof(*rows));
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r = 0;

	diag->text[0] = '\0';
	*ret = rows;
	*ret_n = 0;
	if (!rows)
		return -ENOMEM;
	if (!jobs)
		opts.jobs = cpus > 0 ? (uint32_t)cpus : 1;
	*ret_n = progress.nrows = plan(cl, rows);
	fflush(NULL); /* so that a child has nothing of ours to print */
	for (size_t i = 0; i < *ret_n && r == 0; i++) {
		progress.row = i;
		r = gp_cluster_run(cl, &rows[i].config, rows[i].placement, &opts, &rows[i].result);
		if (r < 0)
			(void)complain(cl, &rows[i], r, diag);
	}
	return r;
}

void gp_cluster_rows_free(struct gp_cluster_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gp_cluster_result_free(rows[i].result);
	free(rows);
}
