// SPDX-License-Identifier: MIT
/*
 * A plug-in of Slurm's (SPANK), loaded by srun, sbatch and salloc, where it adds options, and by slurmstepd,
 * which is root's and starts a job's processes on a node.  There it puts the agent into their environment,
 * and tells the node's gpreemptd which processes these are and what they may be.  That is the
 * administrator's word: the user's is what was asked for, and what slurmctld knows of the job says whether it
 * is granted.  Whatever fails, the job runs, unless `require` says otherwise.
 */
#include <errno.h>
#include <limits.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"
#include "discover/discover.h"
#include "slurm/account.h"
#include "slurm/controller.h"
#include "slurm/words.h"

SPANK_PLUGIN(gpreempt, 1);

#define SAY(...) slurm_spank_log("gpreempt: " __VA_ARGS__)
#define MOST_DEVICES 64
#define USUAL_WEIGHT 100
#define PATIENCE_NS (20 * GP_S) /* with slurmctld, at a step's start and at its end */

static struct gp_slurm_conf conf;
static struct gp_slurm_asked asked;
static char misread[256]; /* what is wrong with plugstack.conf on this node; empty: nothing */

/* Of this step, on this node. */
static struct {
	uint32_t job;
	uint32_t node_id;      /* of those that the step is on: from 0 on */
	uint32_t client_class; /* what it is granted; unknown: we leave it alone */
	char step[16], node[GP_SLURM_NODE], gpus[GP_SLURM_NAME];
	char remark[448];     /* what the user is to know, once there is somewhere to say it */
	bool is_unscheduled;  /* gpreemptd did not answer: it is not waited for again */
	bool *must_not_start; /* shared with the tasks, which are forked before they are declared */
	bool is_declared;
	bool is_told;                /* what it had */
	uint32_t tasks, ended_tasks; /* here */
} this;

/* Options */

static int take_option(int which, const char *text, int remote)
{
	char error[192];

	(void)remote;
	if (gp_slurm_ask(&asked, (enum gp_slurm_option)which, text ? text : "", error, sizeof(error)) == 0)
		return 0;
	slurm_error("%s", error);
	return -1;
}

static struct spank_option options[] = {
	{ "gpreempt", "CLASS", "online: its requests take the GPU from offline work; offline: it gives way",
	  1, GP_SLURM_CLASS, take_option },
	{ "gpreempt-slo", "TIME", "how long a request may take, as 20ms", 1, GP_SLURM_SLO, take_option },
	{ "gpreempt-weight", "N", "its share among its class; 100 is usual", 1, GP_SLURM_WEIGHT,
	  take_option },
	{ "gpreempt-requeue-below", "PERCENT", "requeue it when it gets less of a GPU than that, as 5%", 1,
	  GP_SLURM_FLOOR, take_option },
	{ "gpreempt-requeue-after", "TIME", "for so long, as 30s or 2h; 10m is usual", 1, GP_SLURM_PATIENCE,
	  take_option },
};

/*
 * Who fails here on a node ends each batch job as if all were well, without starting it, and has the node
 * drained (Slurm 22.05): a word too many would do that to the whole cluster.
 */
int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (spank_option_register(sp, &options[i]) != ESPANK_SUCCESS)
			return -1;
	if (gp_slurm_conf_read(argc, argv, &conf, misread, sizeof(misread)) == 0) {
		misread[0] = '\0';
		return 0;
	}
	slurm_error("plugstack.conf: gpreempt: %s", misread);
	return spank_remote(sp) == 1 ? 0 : -1;
}

/* On the node */

static void name_step(uint32_t number)
{
	const struct {
		uint32_t number;
		const char *name;
	} special[] = { { SLURM_BATCH_SCRIPT, "batch" },
			{ SLURM_EXTERN_CONT, "extern" },
			{ SLURM_INTERACTIVE_STEP, "interactive" } };

	snprintf(this.step, sizeof(this.step), "%u", number);
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (special[i].number == number)
			snprintf(this.step, sizeof(this.step), "%s", special[i].name);
}

static void find_step(spank_t sp)
{
	uint32_t number = 0;

	(void)spank_get_item(sp, S_JOB_ID, &this.job);
	(void)spank_get_item(sp, S_JOB_STEPID, &number);
	(void)spank_get_item(sp, S_JOB_NODEID, &this.node_id);
	name_step(number);
	(void)gp_slurm_node(this.node);
}

/* The last is the one that matters. */
__attribute__((format(printf, 1, 2))) static void remark(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(this.remark, sizeof(this.remark), format, args);
	va_end(args);
}

static bool may_be_online(void)
{
	struct gp_slurm_job job;

	if (!conf.online_partitions && !conf.online_qos) {
		if (asked.client_class == GP_CLASS_ONLINE)
			remark("it is offline: plugstack.conf there has no online_partitions= or online_qos=");
		return false;
	}
	if (gp_slurm_job_get(this.job, PATIENCE_NS, &job) < 0) {
		remark("it is offline: slurmctld does not say which partition it is in");
		return false;
	}
	if (gp_slurm_is_listed(conf.online_partitions, job.partition) ||
	    gp_slurm_is_listed(conf.online_qos, job.qos))
		return true;
	if (asked.client_class == GP_CLASS_ONLINE)
		remark("it is offline: partition %s is not for online jobs", job.partition);
	return false;
}

static uint32_t grant(void)
{
	uint32_t wanted = asked.client_class ? asked.client_class : conf.usual_class;

	return wanted == GP_CLASS_ONLINE && !may_be_online() ? GP_CLASS_OFFLINE : wanted;
}

static uint32_t granted_weight(void)
{
	uint32_t wanted = asked.weight ? asked.weight : USUAL_WEIGHT;

	return wanted < conf.most_weight ? wanted : conf.most_weight;
}

static int connect_daemon(struct gp_ctx **ret, char *why, size_t size)
{
	const struct gp_open_opts opts = { .size = sizeof(opts),
					   .backend = "kfd",
					   .socket = conf.socket,
					   .errmsg = why,
					   .errmsg_size = size };
	int r = gp_ctx_open(&opts, ret);

	if (r < 0)
		return r;
	r = gp_job_list(*ret, NULL, 0); /* it is there, knows jobs, and tells us */
	if (r >= 0)
		return 0;
	snprintf(why, size, "%s", gp_ctx_errmsg(*ret));
	gp_ctx_close(*ret);
	return r;
}

/* Without the memory for it tasks hear nothing of what goes wrong once they are forked. */
static int share_verdict(void)
{
	static bool own;
	void *page = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	this.must_not_start = page == MAP_FAILED ? &own : page;
	return page == MAP_FAILED ? -errno : 0;
}

static void do_without(const char *why)
{
	this.is_unscheduled = true;
	*this.must_not_start = conf.is_required;
	remark("%s: %s", conf.is_required ? "it does not start here" : "nobody schedules it", why);
}

/* Before anything is started. */
static void check_daemon(void)
{
	char why[320] = "";
	struct gp_ctx *ctx;

	if (connect_daemon(&ctx, why, sizeof(why)) == 0)
		gp_ctx_close(ctx);
	else
		do_without(why);
}

/* Who does not ask, and has no class by default, is left alone. */
static void check_conf(void)
{
	char why[sizeof(misread) + 32];

	snprintf(why, sizeof(why), "plugstack.conf there: %s", misread);
	if (asked.client_class || conf.usual_class)
		do_without(why);
}

/* Where it is submitted. */
static int check_asked(void)
{
	char error[192];

	if (gp_slurm_ask_check(&asked, &conf, error, sizeof(error)) == 0)
		return 0;
	slurm_error("%s", error);
	return -1;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
	int shared;

	(void)argc;
	(void)argv;
	if (spank_remote(sp) != 1)
		return check_asked();
	find_step(sp);
	shared = share_verdict();
	if (misread[0]) {
		check_conf();
		return 0;
	}
	this.client_class = grant();
	if (this.client_class && shared < 0 && conf.is_required)
		do_without(strerror(-shared));
	else if (this.client_class)
		check_daemon();
	return 0;
}

/* The environment, as gpreempt run has it */

static void set_number(spank_t sp, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	(void)spank_setenv(sp, name, text, 1);
}

static void set_preload(spank_t sp, const char *agent)
{
	char there[4096] = "", all[sizeof(there) + PATH_MAX];
	spank_err_t r = spank_getenv(sp, "LD_PRELOAD", there, sizeof(there));

	if (r != ESPANK_NOSPACE && gp_slurm_preload(agent, there, all, sizeof(all)) == 0)
		(void)spank_setenv(sp, "LD_PRELOAD", all, 1);
	else
		SAY("%s: LD_PRELOAD has no room for the agent: it runs unscheduled", this.node);
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	const char *agent = conf.agent ? conf.agent : GPREEMPT_LIBDIR "/libgpreempt-agent.so";

	(void)argc;
	(void)argv;
	if (spank_remote(sp) == 1 && this.remark[0])
		SAY("%s: %s", this.node, this.remark);
	if (spank_remote(sp) != 1 || !this.client_class)
		return 0;
	(void)spank_setenv(sp, "GPREEMPT_CLASS", this.client_class == GP_CLASS_ONLINE ? "online" : "offline",
			   1);
	if (asked.weight > granted_weight())
		SAY("%s: its weight is %u: plugstack.conf allows no more", this.node, granted_weight());
	if (asked.weight)
		set_number(sp, "GPREEMPT_WEIGHT", granted_weight());
	if (asked.slo_ns)
		set_number(sp, "GPREEMPT_SLO", asked.slo_ns);
	if (conf.socket)
		(void)spank_setenv(sp, "GPREEMPT_SOCKET", conf.socket, 1);
	if (access(agent, R_OK) == 0)
		set_preload(sp, agent);
	else
		SAY("%s: there is no agent at %s: it runs unscheduled", this.node, agent);
	return 0;
}

/*
 * In each task, as its user and before anything of that user's, when all of them are forked and declared.
 * Who fails before its tasks are there ends a batch job as if all were well, and has its node drained (Slurm
 * 22.05).
 */
int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	return this.must_not_start && *this.must_not_start ? -1 : 0;
}

/* Who is of it */

/* "5:freezer:/slurm/uid_1000/job_7/step_0/task_0" up to the step; false: Slurm has made none. */
static bool find_cgroup(pid_t pid, char cgroup[192])
{
	char path[32], line[512];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *at = strchr(line, '/'), *step = at ? strstr(at, "/step_") : NULL;

		if (!step || !strstr(at, "/job_"))
			continue;
		step[1 + strcspn(step + 1, "/\n")] = '\0';
		found = snprintf(cgroup, 192, "%s", at) < 192;
	}
	if (file)
		fclose(file);
	return found;
}

static int declare(struct gp_ctx *ctx, pid_t task)
{
	char name[64], cgroup[192];
	struct gp_job job = { .size = sizeof(job),
			      .pid = (uint32_t)getpid(),
			      .start = gp_proc_start("", (uint32_t)getpid()),
			      .client_class = this.client_class,
			      .slo_ns = asked.slo_ns,
			      .weight = granted_weight(),
			      .floor_permille = asked.floor_permille,
			      .patience_ns = asked.patience_ns,
			      .name = name };

	snprintf(name, sizeof(name), "slurm %u.%s", this.job, this.step);
	if (find_cgroup(task, cgroup))
		job.cgroup = cgroup;
	return gp_job_declare(ctx, &job);
}

/* Slurm sets this one of the two, or unsets it: the other is what the user says. */
static void find_gpus(spank_t sp)
{
	const char *name = !strcmp(this.step, "batch") ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS";

	if (spank_getenv(sp, name, this.gpus, sizeof(this.gpus)) != ESPANK_SUCCESS)
		this.gpus[0] = '\0';
}

static void check_gpus(struct gp_ctx *ctx)
{
	int n = this.gpus[0] ? gp_device_list(ctx, NULL, 0) : -1;

	for (const char *at = this.gpus; n >= 0 && *at; at += strcspn(at, ","), at += *at == ',')
		if (strtol(at, NULL, 10) >= n)
			SAY("%s: Slurm gave it GPU %.*s, and gpreemptd knows %d", this.node,
			    (int)strcspn(at, ","), at, n);
}

static int connect_and_declare(pid_t task, char *why, size_t size)
{
	struct gp_ctx *ctx;
	int r = connect_daemon(&ctx, why, size);

	if (r < 0)
		return r;
	r = declare(ctx, task);
	if (r == 0)
		check_gpus(ctx);
	else
		snprintf(why, size, "gpreemptd does not take it as %s: %s",
			 this.client_class == GP_CLASS_ONLINE ? "online" : "offline", gp_ctx_errmsg(ctx));
	gp_ctx_close(ctx);
	return r;
}

/* The tasks wait for us: none has begun. All are of one tree, or of one cgroup. */
int slurm_spank_task_post_fork(spank_t sp, int argc, char **argv)
{
	char why[384] = "";
	pid_t task = 0;

	(void)argc;
	(void)argv;
	if (!this.client_class || this.is_unscheduled || this.is_declared)
		return 0;
	find_gpus(sp);
	(void)spank_get_item(sp, S_TASK_PID, &task);
	(void)spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &this.tasks);
	this.is_declared = connect_and_declare(task, why, sizeof(why)) == 0;
	if (!this.is_declared) {
		do_without(why);
		SAY("%s: %s", this.node, this.remark);
	}
	return 0;
}

/* What it had */

static bool find_own(struct gp_ctx *ctx, struct gp_job_info *ret)
{
	struct gp_job_info *all;
	int n = gp_job_list(ctx, NULL, 0);
	bool found = false;

	all = n > 0 ? calloc((size_t)n, sizeof(*all)) : NULL;
	if (!all)
		return false;
	all[0].size = sizeof(all[0]);
	if (gp_job_list(ctx, all, (size_t)n) >= 0)
		for (int i = 0; i < n && !found; i++)
			if (all[i].pid == (uint32_t)getpid()) {
				*ret = all[i];
				found = true;
			}
	free(all);
	return found;
}

static void write_report(struct gp_ctx *ctx, const struct gp_slurm_step *step, const struct gp_job_info *had)
{
	static struct gp_device_info devices[MOST_DEVICES];
	int n, r;

	devices[0].size = sizeof(devices[0]);
	n = gp_device_list(ctx, devices, MOST_DEVICES);
	r = gp_slurm_report(conf.report, step, had, devices,
			    n < 0              ? 0
			    : n < MOST_DEVICES ? (size_t)n
					       : MOST_DEVICES);
	if (r < 0)
		slurm_error("gpreempt: cannot write a report into %s: %s", conf.report, strerror(-r));
}

static const char *why_no_comment(int r)
{
	if (r == -ETIMEDOUT)
		return "slurmctld does not answer";
	if (r == -E2BIG)
		return "there is no room in it";
	return r == -EIO ? "slurmctld refuses" : strerror(-r);
}

static void add_to_comment(const char *entry)
{
	int r = gp_slurm_job_comment(this.job, entry, PATIENCE_NS);

	if (r < 0)
		slurm_info("gpreempt: nothing added to the comment of job %u: %s", this.job,
			   why_no_comment(r));
}

static void tell(void)
{
	const struct gp_slurm_step step = { this.job, this.step, this.node, this.gpus };
	char why[320], entry[GP_SLURM_ENTRY];
	struct gp_job_info had;
	struct gp_ctx *ctx;

	if (!this.is_declared || this.is_told)
		return;
	this.is_told = true;
	if (connect_daemon(&ctx, why, sizeof(why)) < 0)
		return;
	if (find_own(ctx, &had)) {
		gp_slurm_entry(&step, &had, entry);
		if (conf.report)
			write_report(ctx, &step, &had);
		if (this.node_id < GP_SLURM_MOST_ENTRIES)
			add_to_comment(entry);
	}
	gp_ctx_close(ctx);
}

/* A job of srun's own ends with it, and it does not know yet that the last task has ended. */
int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	if (++this.ended_tasks == this.tasks)
		tell();
	return 0;
}

int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (spank_remote(sp) == 1)
		tell();
	return 0;
}
