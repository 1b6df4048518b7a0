// SPDX-License-Identifier: MIT
/*
 * Each row is a process: a crash takes one row along and has a name, and nothing
 * of one run can reach another.  Results come back through shared memory.
 */
#include "study/rows.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "study/parse.h"
#include "base/units.h"

#define TIMELINE_NS (200 * GP_MS)
#define MAX_SPANS 1500

/* What a row's process leaves behind. */
struct slot {
	int32_t error;
	struct gp_run_result run;
	struct gp_span spans[MAX_SPANS];
};

struct job {
	pid_t pid;
	size_t row;
};

struct runner {
	const struct gp_scenario *sc;
	struct gp_rows *rows;
	struct gp_place at;
	size_t next;
	size_t done;
	size_t running;
	size_t njobs;
	struct job *jobs;
};

static bool has_class(const struct gp_scenario *sc, uint32_t client_class)
{
	for (uint32_t i = 0; i < sc->ngroups; i++)
		if (sc->groups[i].client_class == client_class)
			return true;
	return false;
}

static void add_row(struct gp_rows *rows, uint32_t kind, uint32_t sweep, struct gp_config config)
{
	rows->row[rows->n++] = (struct gp_row){ .kind = kind, .sweep = sweep, .config = config };
}

static void plan_value(const struct gp_scenario *sc, uint32_t sweep, struct gp_rows *rows)
{
	const bool online = has_class(sc, GP_CLASS_ONLINE);
	bool exclusive = false;

	if (has_class(sc, GP_CLASS_OFFLINE))
		add_row(rows, GP_ROW_ALONE, sweep, (struct gp_config){ .kind = GP_CONFIG_NATIVE });
	for (uint32_t i = 0; i < sc->nconfigs; i++)
		exclusive |= sc->configs[i].kind == GP_CONFIG_EXCLUSIVE;
	if (online && !exclusive)
		add_row(rows, GP_ROW_EXCLUSIVE, sweep, (struct gp_config){ .kind = GP_CONFIG_EXCLUSIVE });
	for (uint32_t i = 0; i < sc->nconfigs; i++)
		if (online || sc->configs[i].kind != GP_CONFIG_EXCLUSIVE)
			add_row(rows, GP_ROW_SHOWN, sweep, sc->configs[i]);
}

static int plan(const struct gp_scenario *sc, struct gp_rows *rows)
{
	const uint32_t values = sc->nsweep ? sc->nsweep : 1;

	rows->row = calloc((size_t)values * (sc->nconfigs + 2), sizeof(*rows->row));
	if (!rows->row)
		return -ENOMEM;
	for (uint32_t i = 0; i < values; i++)
		plan_value(sc, i, rows);
	rows->memory_size = rows->n * sizeof(struct slot);
	rows->memory =
		mmap(NULL, rows->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rows->memory == MAP_FAILED) {
		rows->memory = NULL;
		return -errno;
	}
	return 0;
}

static void drop_online(struct gp_scenario *sc)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sc->ngroups; i++)
		if (sc->groups[i].client_class != GP_CLASS_ONLINE)
			sc->groups[n++] = sc->groups[i];
	sc->ngroups = n;
}

static int run_into(const struct gp_scenario *sc, const struct gp_row *row, struct slot *slot)
{
	const uint32_t last = sc->nsweep ? sc->nsweep - 1 : 0;
	struct gp_run_opts opts = { .timeline_ns = TIMELINE_NS, .max_spans = MAX_SPANS };
	struct gp_run_result *run;
	struct gp_scenario at;
	int r;

	if (row->kind != GP_ROW_SHOWN || row->sweep != last)
		opts = (struct gp_run_opts){ 0 }; /* one value's timelines are enough to look at */
	if (sc->nsweep)
		gp_scenario_at(sc, row->sweep, &at);
	else
		at = *sc;
	if (row->kind == GP_ROW_ALONE)
		drop_online(&at);
	r = gp_run(&at, &row->config, &opts, &run);
	if (r < 0)
		return r;
	slot->run = *run;
	slot->run.spans = slot->spans;
	slot->run.nspans = run->nspans < MAX_SPANS ? run->nspans : MAX_SPANS;
	if (slot->run.nspans)
		memcpy(slot->spans, run->spans, slot->run.nspans * sizeof(*run->spans));
	gp_run_free(run);
	return 0;
}

static struct slot *slot_of(const struct gp_rows *rows, size_t i)
{
	return (struct slot *)rows->memory + i;
}

static const char *row_text(const struct gp_row *row, char text[GP_SCENARIO_NAME])
{
	if (row->kind == GP_ROW_ALONE)
		return "offline alone";
	return gp_config_text(&row->config, text);
}

static int start_row(struct runner *rn)
{
	struct slot *slot = slot_of(rn->rows, rn->next);
	const pid_t parent = getpid();
	pid_t pid;

	slot->error = -ECHILD; /* what it is if the process never comes to the end */
	pid = fork();
	if (pid < 0)
		return gp_complain(&rn->at, "cannot start a process: %s; try --jobs 1", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		slot->error = run_into(rn->sc, &rn->rows->row[rn->next], slot);
		_exit(0);
	}
	rn->jobs[rn->running++] = (struct job){ .pid = pid, .row = rn->next++ };
	return 0;
}

static int finish_row(struct runner *rn, size_t i, int status)
{
	struct gp_row *row = &rn->rows->row[i];
	char text[GP_SCENARIO_NAME];

	row->error = slot_of(rn->rows, i)->error;
	if (WIFSIGNALED(status))
		return gp_complain(&rn->at, "the row %s died: %s", row_text(row, text),
				   strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) || row->error == -ECHILD)
		return gp_complain(&rn->at, "the row %s ended early, with status %d", row_text(row, text),
				   WEXITSTATUS(status));
	if (row->error < 0 && row->error != -ENOTSUP)
		return gp_complain(&rn->at, "the row %s failed: %s", row_text(row, text),
				   strerror(-row->error));
	row->run = &slot_of(rn->rows, i)->run;
	return 0;
}

/* A child that is not ours, left by whoever ran us, is collected and forgotten. */
static int wait_row(struct runner *rn)
{
	int status;
	pid_t pid;

	pid = wait(&status);
	if (pid < 0)
		return errno == EINTR ? 0 : gp_complain(&rn->at, "cannot wait: %s", strerror(errno));
	for (size_t i = 0; i < rn->running; i++) {
		struct job job = rn->jobs[i];

		if (job.pid != pid)
			continue;
		rn->jobs[i] = rn->jobs[--rn->running];
		rn->done++;
		return finish_row(rn, job.row, status);
	}
	return 0;
}

static void show_progress(const struct runner *rn)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (rn->done < rn->rows->n)
		fprintf(stderr, "\rsimulating: %zu of %zu rows ", rn->done, rn->rows->n);
	else
		fprintf(stderr, "\r\033[K");
	fflush(stderr);
}

static int run_all(struct runner *rn)
{
	int r = 0;

	while (rn->done < rn->rows->n && r == 0) {
		show_progress(rn);
		while (r == 0 && rn->running < rn->njobs && rn->next < rn->rows->n)
			r = start_row(rn);
		if (r == 0)
			r = wait_row(rn);
	}
	for (size_t i = 0; i < rn->running; i++) {
		(void)kill(rn->jobs[i].pid, SIGKILL);
		(void)waitpid(rn->jobs[i].pid, NULL, 0);
	}
	if (r < 0)
		rn->done = rn->rows->n;
	show_progress(rn);
	return r;
}

static uint32_t count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (uint32_t)n : 1;
}

int gp_rows_run(const struct gp_scenario *sc, uint32_t jobs, struct gp_rows *ret, struct gp_diag *diag)
{
	struct gp_rows rows = { 0 };
	struct runner rn = { .sc = sc, .rows = &rows, .at = { .file = sc->name, .diag = diag } };
	int r;

	diag->text[0] = '\0';
	rn.njobs = jobs ? jobs : count_cpus();
	rn.jobs = calloc(rn.njobs, sizeof(*rn.jobs));
	r = rn.jobs ? plan(sc, &rows) : -ENOMEM;
	fflush(NULL); /* so that a child has nothing of ours to print */
	if (r == 0)
		r = run_all(&rn);
	free(rn.jobs);
	if (r < 0) {
		(void)gp_complain(&rn.at, "%s", strerror(-r));
		gp_rows_free(&rows);
		return r;
	}
	*ret = rows;
	return 0;
}

void gp_rows_free(struct gp_rows *rows)
{
	if (rows->memory)
		munmap(rows->memory, rows->memory_size);
	free(rows->row);
	*rows = (struct gp_rows){ 0 };
}

const struct gp_row *gp_rows_find(const struct gp_rows *rows, uint32_t kind, uint32_t sweep)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct gp_row *row = &rows->row[i];

		if (row->sweep != sweep)
			continue;
		if (row->kind == kind)
			return row;
		if (kind == GP_ROW_EXCLUSIVE && row->kind != GP_ROW_ALONE &&
		    row->config.kind == GP_CONFIG_EXCLUSIVE)
			return row;
	}
	return NULL;
}
