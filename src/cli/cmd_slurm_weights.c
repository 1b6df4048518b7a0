// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine_list.h"
#include "cli/options.h"
#include "cli/scontrol.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt slurm-weights [options]\n"
	"\n"
	"Gives this node of a Slurm cluster a weight by how much of its GPUs online work uses, as of the\n"
	"last ten seconds: its own, which is 1, if none, and 1000 more if all. Slurm gives a job the nodes\n"
	"of the least weight that will do, so offline jobs go where most is left for them. Changes of less\n"
	"than 50 are left out.\n"
	"For root, every minute or so on each node: HealthCheckProgram of slurm.conf.\n"
	"\n"
	"  --base N           the node's own weight, as slurm.conf has it; usually 1\n"
	"  --name NODE        what Slurm calls this node; usually its host name\n"
	"  --simulated        count simulated GPUs, too, of which any user can add some\n"
	"  --dry-run          say what would be done, and do nothing\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt slurm-weights --dry-run\n"
	"  gpreempt slurm-weights --base 200\n";

#define MOST_DEVICES 64
#define LEAST_CHANGE 50

struct weight {
	const char *node;
	uint32_t devices;
	uint64_t used_permille; /* by online work, of all of them */
	uint32_t has, should_have;
};

/* By all online clients of a device together: they use at most all of it. */
static uint64_t use_of(uint32_t device, const struct gp_client_info *clients, int n)
{
	uint64_t used = 0;

	for (int i = 0; i < n; i++)
		if (clients[i].client_class == GP_CLASS_ONLINE && clients[i].device == device)
			used += clients[i].share_permille;
	return used < 1000 ? used : 1000;
}

/* Simulated GPUs are any user's to add, and the weight is not any user's to change. */
static int measure(struct gp_ctx *ctx, int with_simulated, struct weight *w)
{
	struct gp_device_info devices[MOST_DEVICES] = { { .size = sizeof(devices[0]) } };
	struct gp_client_info *clients;
	int nclients, n = gp_device_list(ctx, devices, MOST_DEVICES);

	if (n < 0)
		return n;
	nclients = gp_clients_read(ctx, &clients);
	if (nclients < 0)
		return nclients;
	for (int i = 0; i < n && i < MOST_DEVICES; i++) {
		if (gp_device_is_simulated(&devices[i]) && !with_simulated)
			continue;
		w->devices++;
		w->used_permille += use_of(devices[i].device, clients, nclients);
	}
	free(clients);
	if (!w->devices)
		return -ENODEV;
	w->used_permille /= w->devices;
	return 0;
}

/* What scontrol had to complain of slurmctld is on stderr; that there is no such node is its answer. */
static int tell_why(const struct weight *w, int r, const char *said)
{
	if (r == -ENOENT)
		return gp_fail(GP_EXIT_FAILED,
			       "slurm-weights: there is no scontrol in PATH: is Slurm installed?");
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "slurm-weights: cannot run scontrol: %s", gp_strerror(r));
	if (r == 0 || strstr(said, "not found"))
		return gp_fail(GP_EXIT_FAILED,
			       "slurm-weights: slurmctld knows no node %s; --name names another", w->node);
	return gp_fail(GP_EXIT_FAILED,
		       "slurm-weights: scontrol cannot ask slurmctld, see its line above: is slurmctld "
		       "running, and does slurm.conf here, or SLURM_CONF, name it?");
}

/* -1 to go on, else the exit code. */
static int read_weight(struct weight *w)
{
	const char *const ask[] = { "scontrol", "show", "node", "-o", w->node, NULL };
	char said[4096] = "";
	int r = gp_scontrol(ask, said, sizeof(said));
	const char *at = r == 0 ? strstr(said, " Weight=") : NULL;

	if (!at)
		return tell_why(w, r, said);
	w->has = (uint32_t)strtoul(at + strlen(" Weight="), NULL, 10);
	return -1;
}

static int set_weight(const struct weight *w)
{
	char node[GP_SLURM_NODE + 16], weight[32], said[512];
	const char *const tell[] = { "scontrol", "update", node, weight, NULL };

	snprintf(node, sizeof(node), "NodeName=%s", w->node);
	snprintf(weight, sizeof(weight), "Weight=%" PRIu32, w->should_have);
	if (gp_scontrol(tell, said, sizeof(said)) == 0)
		return GP_EXIT_OK;
	return gp_fail(GP_EXIT_FAILED, "slurm-weights: slurmctld does not take it: %s", said);
}

static bool is_far(const struct weight *w)
{
	uint32_t change = w->has < w->should_have ? w->should_have - w->has : w->has - w->should_have;

	return change >= LEAST_CHANGE;
}

static void print(const struct weight *w, const struct gp_options *o)
{
	const char *what = !is_far(w) ? "stays" : o->dry_run ? "would become" : "becomes";
	struct json_object *out;

	if (!o->json) {
		printf("%s: online work uses %" PRIu64 ".%" PRIu64 "%% of %" PRIu32 " GPUs; weight %" PRIu32
		       " %s %" PRIu32 "\n",
		       w->node, w->used_permille / 10, w->used_permille % 10, w->devices, w->has, what,
		       is_far(w) ? w->should_have : w->has);
		return;
	}
	out = json_object_new_object();
	gp_json_add_text(out, "schema", "gpreempt-slurm-weights-1");
	gp_json_add_text(out, "node", w->node);
	gp_json_add_int(out, "devices", w->devices);
	gp_json_add_int(out, "used_permille", w->used_permille);
	gp_json_add_int(out, "had", w->has);
	gp_json_add_int(out, "weight", is_far(w) ? w->should_have : w->has);
	json_object_object_add(out, "changed", json_object_new_boolean(is_far(w) && !o->dry_run));
	gp_json_print(out);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct weight w = { 0 };
	char name[GP_SLURM_NODE];
	struct gp_options o;
	struct gp_ctx *ctx;
	int r, code = gp_options_parse(verb, argc, argv, 0, 0, &o);

	if (code < 0)
		code = gp_machine_open(&o, NULL, &ctx);
	if (code >= 0)
		return code;
	w.node = o.name ? o.name : gp_node_name(name);
	r = measure(ctx, o.simulated, &w);
	w.should_have = (uint32_t)(o.base ? o.base : 1) + (uint32_t)w.used_permille;
	if (r == -ENODEV)
		code = gp_fail(GP_EXIT_FAILED,
			       "slurm-weights: gpreemptd knows no GPU here; --simulated counts simulated "
			       "ones");
	else if (r < 0)
		code = gp_machine_fail(ctx, r);
	gp_ctx_close(ctx);
	if (code < 0)
		code = read_weight(&w);
	if (code < 0 && is_far(&w) && !o.dry_run)
		code = set_weight(&w);
	if (code <= 0)
		print(&w, &o);
	return code < 0 ? GP_EXIT_OK : code;
}

const struct gp_verb gp_verb_slurm_weights = {
	.name = "slurm-weights",
	.summary = "weigh this node for Slurm by what online work leaves",
	.usage = usage,
	.options = "base name simulated dry-run socket json",
	.run = run,
};
