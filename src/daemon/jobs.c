// SPDX-License-Identifier: MIT
/*
 * Jobs, as whoever starts them declares: which processes are of one, and what they are at the most.  A job
 * lasts as long as the process that was named, which whoever declares it has under control (Slurm's
 * slurmstepd).  A file beside our own socket has them all, for the next gpreemptd.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/kept.h"
#include "daemon/log.h"
#include "daemon/manager.h"

#define MOST 1024
#define LINE 448 /* bytes, of the file */
#define KEPT "jobs"
#define NONE "-"
#define MOST_ANCESTORS 256
#define MOST_TRIES 16 /* at one of them: its parent ended meanwhile */
#define MOST_CGROUPS 8192
#define MOST_SEATS 130

struct gp_declared {
	struct gp_list all;
	struct gp_manager *manager;
	struct gp_process process;
	struct gp_watch ended; /* the process; where it has no pidfd, gp_jobs_look() sees it */
	struct gp_msg_job said;
	struct gp_core_usage usage; /* of processes that have gone */
	uint64_t requests, with_slo, within_slo;
	struct gp_hist *latency; /* of requests; NULL: there was none */
	uint64_t starves_since_ns;
	bool is_partial;
};

static struct gp_declared *of(struct gp_list *pos)
{
	return gp_container(pos, struct gp_declared, all);
}

/* The file: what was said, the texts last. They have no control character in them. */

static size_t describe(const struct gp_manager *m, char *text)
{
	size_t used = 0;

	gp_list_each(pos, &m->jobs) {
		const struct gp_msg_job *j = &of(pos)->said;

		used += (size_t)snprintf(text + used, LINE,
					 "%u %u %" PRIu64 " %" PRIu64 " %u %u %" PRIu64 "\t%s\t%s\n", j->pid,
					 j->client_class, j->start, j->slo_ns, j->weight, j->floor_permille,
					 j->patience_ns, j->name, j->cgroup[0] ? j->cgroup : NONE);
	}
	return used;
}

static void save(const struct gp_manager *m)
{
	char *text = malloc(MOST * LINE);

	if (text)
		gp_kept_write(m->conf, KEPT, text, describe(m, text));
	free(text);
}

static bool read_line(const char *line, struct gp_msg_job *ret)
{
	bool is_whole = sscanf(line, "%u %u %" SCNu64 " %" SCNu64 " %u %u %" SCNu64 "\t%63[^\t\n]\t%191[^\n]",
			       &ret->pid, &ret->client_class, &ret->start, &ret->slo_ns, &ret->weight,
			       &ret->floor_permille, &ret->patience_ns, ret->name, ret->cgroup) == 9;

	if (!is_whole)
		return false;
	if (!strcmp(ret->cgroup, NONE))
		ret->cgroup[0] = '\0';
	return ret->client_class == GP_CLASS_OFFLINE || ret->client_class == GP_CLASS_ONLINE;
}

/* Who is of a job */

/* 0: it has none that we can see. */
static uint32_t parent_of(uint32_t pid)
{
	char path[32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')'); /* a name may have anything in it, but no bracket comes after it */
	return at && strlen(at) > 4 ? (uint32_t)strtoul(at + 4, NULL, 10) : 0;
}

/*
 * The parent of a process, and that one's own parent: of the same process, whoever gets the number next, if
 * it is the parent still when both are known.
 */
static uint32_t two_up(uint32_t pid, uint32_t *ret_second)
{
	for (int i = 0; i < MOST_TRIES; i++) {
		uint32_t parent = parent_of(pid);

		*ret_second = parent ? parent_of(parent) : 0;
		if (parent_of(pid) == parent)
			return parent;
	}
	return 0;
}

static bool descends(uint32_t pid, uint32_t from)
{
	uint32_t second;

	for (int i = 0; pid && i < MOST_ANCESTORS; i++) {
		if (pid == from)
			return true;
		pid = two_up(pid, &second);
		if (second == from)
			return true;
	}
	return false;
}

/* "4:memory:/slurm/job_7/step_0/task_1", a line for each hierarchy; below it, too. */
static bool is_in_cgroup(const char *lines, const char *cgroup)
{
	size_t len = strlen(cgroup);

	for (const char *at = lines; at && *at; at = strchr(at, '\n')) {
		at += *at == '\n';
		at += strcspn(at, ":\n");
		at += *at == ':';
		at += strcspn(at, ":\n");
		at += *at == ':';
		if (!strncmp(at, cgroup, len) && strchr("/\n", at[len]))
			return true;
	}
	return false;
}

static bool is_of(const struct gp_declared *j, const struct gp_client *c, const char *cgroups)
{
	bool is = j->said.cgroup[0] ? is_in_cgroup(cgroups, j->said.cgroup) : descends(c->pid, j->said.pid);

	/* Both had their numbers all the time, if they have them still. */
	return is && gp_process_lives(&j->process) && gp_process_lives(&c->process);
}

/* One that was of a job stays of it, whoever is its parent by now. */
void gp_jobs_find(struct gp_manager *m, struct gp_client *c)
{
	char cgroups[MOST_CGROUPS];

	if (c->job || c->process.fd < 0 || c->jobs_seen == m->jobs_declared)
		return;
	c->jobs_seen = m->jobs_declared;
	if (gp_list_empty(&m->jobs) || gp_process_read(&c->process, "cgroup", cgroups, sizeof(cgroups)) < 0)
		return;
	gp_list_each(pos, &m->jobs) {
		if (!is_of(of(pos), c, cgroups))
			continue;
		c->job = of(pos);
		(void)gp_core_client_usage(m->core, c->handle, &c->before_job, m->loop.now_ns);
		return;
	}
}

/* A program that another one has become by exec() is where it was; a new agent may be somewhere else. */
void gp_jobs_forget_sight(struct gp_client *c)
{
	c->jobs_seen = 0;
}

/* What that means */

bool gp_job_verdict(const struct gp_client *c, struct gp_class_verdict *ret)
{
	const struct gp_msg_job *said = c->job ? &c->job->said : NULL;
	bool is_less;

	if (!said)
		return false;
	is_less = said->client_class == GP_CLASS_ONLINE &&
		  (c->granted == GP_CLASS_OFFLINE ||
		   (c->granted == GP_CLASS_UNKNOWN && c->seen == GP_CLASS_OFFLINE));
	ret->client_class = is_less ? GP_CLASS_OFFLINE : said->client_class;
	snprintf(ret->rule, sizeof(ret->rule), "job %s%s", said->name,
		 is_less ? ", less by its own word" : "");
	return true;
}

uint32_t gp_job_weight(const struct gp_client *c)
{
	uint32_t most = c->job ? c->job->said.weight : 0;

	return most && (!c->weight || c->weight > most) ? most : c->weight;
}

uint64_t gp_job_slo(const struct gp_client *c)
{
	uint64_t least = c->job ? c->job->said.slo_ns : 0;

	return c->slo_ns < least ? least : c->slo_ns;
}

/* What it has had */

static void add_usage(const struct gp_manager *m, const struct gp_client *c, struct gp_core_usage *to)
{
	const struct gp_core_usage *before = &c->before_job;
	struct gp_core_usage now;

	if (gp_core_client_usage(m->core, c->handle, &now, m->loop.now_ns) < 0)
		return;
	to->ran_ns += now.ran_ns - before->ran_ns;
	to->waits += now.waits - before->waits;
	to->waited_ns += now.waited_ns - before->waited_ns;
}

void gp_jobs_client_gone(struct gp_manager *m, const struct gp_client *c)
{
	if (c->job)
		add_usage(m, c, &c->job->usage);
}

void gp_jobs_request(struct gp_manager *m, uint64_t client, uint64_t latency_ns)
{
	const struct gp_client *c = m->njobs ? gp_world_client_by_handle(&m->world, client) : NULL;
	struct gp_declared *j = c ? c->job : NULL;
	uint64_t slo_ns;

	if (!j)
		return;
	slo_ns = j->said.slo_ns ? j->said.slo_ns : c->slo_ns; /* nobody is on time by giving itself more */
	j->requests++;
	j->with_slo += slo_ns > 0;
	j->within_slo += slo_ns && latency_ns <= slo_ns;
	if (!j->latency)
		j->latency = calloc(1, sizeof(*j->latency));
	if (j->latency)
		gp_hist_add(j->latency, latency_ns);
}

/* The most of a device's time that one of its processes has; -1: none has work. */
static int share_of(struct gp_manager *m, const struct gp_declared *j)
{
	static struct gp_core_seat seats[MOST_SEATS];
	int share = -1;

	gp_list_each(pos, &m->world.all_clients) {
		const struct gp_client *c = gp_container(pos, struct gp_client, all);
		int n = c->job == j ? gp_core_seats(m->core, c->handle, seats, MOST_SEATS, m->loop.now_ns)
				    : 0;

		for (int i = 0; i < n && i < MOST_SEATS; i++)
			if (seats[i].state == GP_CLIENT_RUNNING || seats[i].state == GP_CLIENT_WAITING)
				share = share > (int)seats[i].share_permille ? share
									     : (int)seats[i].share_permille;
	}
	return share;
}

static void watch_share(struct gp_manager *m, struct gp_declared *j)
{
	int share = j->said.floor_permille ? share_of(m, j) : -1;

	if (share < 0 || share >= (int)j->said.floor_permille)
		j->starves_since_ns = 0;
	else if (!j->starves_since_ns)
		j->starves_since_ns = m->loop.now_ns;
}

/* From beginning to end */

static void drop(struct gp_declared *j)
{
	struct gp_manager *m = j->manager;

	if (j->ended.fd >= 0)
		gp_loop_remove(&m->loop, &j->ended);
	gp_process_close(&j->process);
	gp_list_remove(&j->all);
	m->njobs--;
	free(j->latency);
	free(j);
}

/* Whoever is of it, or may be by now. */
static void judge_again(struct gp_manager *m, const struct gp_declared *j)
{
	gp_list_each(pos, &m->world.all_clients) {
		struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (!c->job || c->job == j)
			gp_judge_client(m, c);
	}
}

static void process_ended(void *arg, uint32_t events)
{
	struct gp_declared *j = arg;
	struct gp_manager *m = j->manager;

	(void)events;
	gp_log("job %s has ended", j->said.name);
	gp_list_each(pos, &m->world.all_clients) {
		struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (c->job != j)
			continue;
		c->job = NULL;
		gp_judge_client(m, c);
	}
	drop(j);
	save(m);
}

static int watch_process(struct gp_declared *j)
{
	if (!j->process.is_pidfd)
		return 0;
	j->ended.fd = j->process.fd;
	return gp_loop_add(&j->manager->loop, &j->ended, EPOLLIN);
}

/* The handle before the start: what has that start then has it, while the handle lives. */
static int open_process(const struct gp_msg_job *said, struct gp_declared *j)
{
	int r = gp_process_open(said->pid, &j->process);

	if (r < 0)
		return r;
	j->said = *said;
	j->said.start = gp_proc_start("", said->pid);
	if (!j->said.start || (said->start && said->start != j->said.start) || !gp_process_lives(&j->process))
		return -ESRCH;
	return watch_process(j);
}

static int declare(struct gp_manager *m, const struct gp_msg_job *said, struct gp_declared **ret)
{
	struct gp_declared *j = m->njobs < MOST ? calloc(1, sizeof(*j)) : NULL;
	int r;

	if (!j)
		return m->njobs < MOST ? -ENOMEM : -ENOSPC;
	*j = (struct gp_declared){ .manager = m,
				   .process = GP_NO_PROCESS,
				   .ended = { .fd = -1, .fn = process_ended, .arg = j } };
	gp_list_append(&m->jobs, &j->all);
	m->njobs++;
	r = open_process(said, j);
	if (r < 0)
		drop(j);
	else
		*ret = j;
	return r;
}

static struct gp_declared *find(const struct gp_manager *m, const struct gp_msg_job *said)
{
	gp_list_each(pos, &m->jobs) {
		struct gp_declared *j = of(pos);

		if (j->said.pid == said->pid && (!said->start || said->start == j->said.start) &&
		    gp_process_lives(&j->process))
			return j;
	}
	return NULL;
}

static void change(struct gp_declared *j, const struct gp_msg_job *said)
{
	uint64_t start = j->said.start;

	j->said = *said;
	j->said.start = start;
}

/* What tools ask */

static const char *text_of(int r)
{
	return r == -ESRCH    ? "there is no such process, or it has ended"
	       : r == -ENOSPC ? "1024 jobs are declared: there is room for no more"
	       : r == -EINVAL ? "a job has a process and a name"
			      : strerror(-r);
}

void gp_jobs_declare(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	const struct gp_msg_job *said = &msg->job;
	struct gp_declared *j = find(m, said);
	int r = said->pid && said->pid <= INT32_MAX && said->name[0] ? 0 : -EINVAL;

	if (!gp_may_order(p)) {
		(void)gp_peer_error(
			p, msg->serial, -EPERM,
			"only root may declare jobs, on the host itself; or the user whose gpreemptd "
			"this is");
		return;
	}
	if (r == 0 && j)
		change(j, said);
	else if (r == 0)
		r = declare(m, said, &j);
	if (r < 0) {
		(void)gp_peer_error(p, msg->serial, r, text_of(r));
		return;
	}
	gp_log("job %s of process %u is %s at the most", said->name, said->pid,
	       said->client_class == GP_CLASS_ONLINE ? "online" : "offline");
	m->jobs_declared++;
	judge_again(m, j);
	save(m); /* who is told so may end us */
	gp_answer_done(p, msg->serial);
}

static void fill(struct gp_manager *m, const struct gp_declared *j, struct gp_job_info *ret)
{
	struct gp_core_usage usage = j->usage;
	uint64_t since_ns = j->starves_since_ns;

	*ret = (struct gp_job_info){ .size = sizeof(*ret),
				     .pid = j->said.pid,
				     .client_class = j->said.client_class,
				     .weight = j->said.weight,
				     .slo_ns = j->said.slo_ns,
				     .requests = j->requests,
				     .with_slo = j->with_slo,
				     .within_slo = j->within_slo,
				     .starving_ns = since_ns ? m->loop.now_ns - since_ns : 0,
				     .is_partial = j->is_partial };
	snprintf(ret->name, sizeof(ret->name), "%s", j->said.name);
	gp_list_each(pos, &m->world.all_clients) {
		const struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (c->job != j)
			continue;
		ret->clients++;
		add_usage(m, c, &usage);
	}
	ret->ran_ns = usage.ran_ns;
	ret->waits = usage.waits;
	ret->waited_ns = usage.waited_ns;
	ret->is_starved = since_ns && ret->starving_ns >= j->said.patience_ns;
	if (!j->latency)
		return;
	ret->p50_ns = gp_hist_quantile(j->latency, 5000);
	ret->p99_ns = gp_hist_quantile(j->latency, 9900);
	ret->max_ns = j->latency->max;
}

/* Quantiles take their time: not for everybody. */
void gp_jobs_list(struct gp_manager *m, struct gp_peer *p, uint32_t serial)
{
	static struct gp_msg msg;

	if (!(p->rights & GP_RIGHT_OTHERS)) {
		(void)gp_peer_error(p, serial, -EPERM, "only root and group gpreempt may list jobs");
		return;
	}
	msg.serial = serial;
	msg.type = GP_MSG_JOB_INFO;
	gp_list_each(pos, &m->jobs) {
		fill(m, of(pos), &msg.job_info);
		if (gp_peer_send(p, &msg) < 0)
			return;
	}
	msg.type = GP_MSG_END;
	(void)gp_peer_send(p, &msg);
}

/* What the last gpreemptd had */

void gp_jobs_again(struct gp_manager *m)
{
	char *text = malloc(MOST * LINE + 1);
	struct gp_msg_job said;
	struct gp_declared *j;

	if (!text)
		return;
	gp_kept_read(m->conf, KEPT, text, MOST * LINE + 1);
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line && read_line(line, &said) && declare(m, &said, &j) == 0)
			j->is_partial = true;
	}
	if (text[0])
		save(m);
	free(text);
	m->jobs_declared++;
}

void gp_jobs_look(struct gp_manager *m)
{
	gp_list_each_safe(pos, &m->jobs) {
		struct gp_declared *j = of(pos);

		if (!gp_process_lives(&j->process))
			process_ended(j, 0);
		else
			watch_share(m, j);
	}
}

void gp_jobs_close(struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_clients)
		gp_container(pos, struct gp_client, all)->job = NULL;
	gp_list_each_safe(pos, &m->jobs)
		drop(of(pos));
}
