// SPDX-License-Identifier: MIT
#include "slurm/controller.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "slurm/account.h"

#define TRIES 16 /* at a comment that others write too */
#define LEAST_NAP_NS 5000000
#define MOST_NAP_NS 20000000
#define AWAY_NAP_NS (250 * GP_MS)

/* What the process that asks hands back. */
struct answer {
	int r;
	struct gp_slurm_job job;
};

struct question {
	void (*ask)(const struct question *q, struct answer *a);
	uint32_t job;
	const char *entry;
};

/* In the process that asks, which is ended when it is too late */

static void nap(uint64_t ns)
{
	const struct timespec some = { .tv_nsec = (long)ns };

	(void)nanosleep(&some, NULL);
}

/* It was slurmctld that said no, and would again. Else it is away, or begins, or has no time. */
static bool is_refusal(int error)
{
	return error >= ESLURM_INVALID_PARTITION_NAME && error < ESLURMD_PIPE_ERROR_ON_TASK_SPAWN &&
	       error != ESLURM_IN_STANDBY_MODE && error != ESLURM_IN_STANDBY_USE_BACKUP;
}

static int load(uint32_t job, job_info_msg_t **ret)
{
	while (slurm_load_job(ret, job, SHOW_ALL) != SLURM_SUCCESS) {
		if (is_refusal(errno))
			return -EIO;
		nap(AWAY_NAP_NS);
	}
	return 0;
}

/* An array's tasks come together. NULL: it is not there. */
static const job_info_t *find(const job_info_msg_t *all, uint32_t job)
{
	for (uint32_t i = 0; i < all->record_count; i++)
		if (all->job_array[i].job_id == job)
			return &all->job_array[i];
	return NULL;
}

static void get_job(const struct question *q, struct answer *a)
{
	const job_info_t *found;
	job_info_msg_t *all;

	a->r = load(q->job, &all);
	if (a->r < 0)
		return;
	found = find(all, q->job);
	if (found) {
		snprintf(a->job.partition, sizeof(a->job.partition), "%s",
			 found->partition ? found->partition : "");
		snprintf(a->job.qos, sizeof(a->job.qos), "%s", found->qos ? found->qos : "");
	}
	a->r = found ? 0 : -EIO;
	slurm_free_job_info_msg(all);
}

static int get_comment(uint32_t job, char text[GP_SLURM_COMMENT])
{
	const job_info_t *found;
	job_info_msg_t *all;
	int n = 0, r = load(job, &all);

	if (r < 0)
		return r;
	found = find(all, job);
	if (found)
		n = snprintf(text, GP_SLURM_COMMENT, "%s", found->comment ? found->comment : "");
	slurm_free_job_info_msg(all);
	return !found ? -EIO : n < GP_SLURM_COMMENT ? 0 : -E2BIG;
}

static int set_comment(uint32_t job, char *text)
{
	job_desc_msg_t change;

	slurm_init_job_desc_msg(&change);
	change.job_id = job;
	change.comment = text;
	while (slurm_update_job(&change) != SLURM_SUCCESS) {
		if (is_refusal(errno))
			return -EIO;
		nap(AWAY_NAP_NS);
	}
	return 0;
}

/*
 * slurmctld has no way to add to a comment.  Two that read the same one write each other's entry away:
 * whoever finds its own gone, now or a little later, tries again, each after a time of its own.
 */
static void add_to_comment(const struct question *q, struct answer *a)
{
	char before[GP_SLURM_COMMENT], text[GP_SLURM_COMMENT];
	unsigned int chance = (unsigned int)getpid();
	int seen = 0, r = get_comment(q->job, before);

	for (int i = 0; r == 0 && i < TRIES && seen < 2; i++) {
		seen = gp_slurm_comment_has(before, q->entry) ? seen + 1 : 0;
		if (!seen) {
			r = gp_slurm_comment(before, q->entry, text);
			if (r == 0)
				r = set_comment(q->job, text);
		}
		nap(LEAST_NAP_NS + (uint64_t)rand_r(&chance) % MOST_NAP_NS);
		if (r == 0)
			r = get_comment(q->job, before);
	}
	a->r = r;
}

/* In slurmstepd, which does not end before its child */

static void answer_and_exit(const struct question *q, int to, pid_t stepd)
{
	struct answer a = { .r = -EIO };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != stepd)
		_exit(1); /* it was killed before: nobody hears, and nobody would end this one */
	q->ask(q, &a);
	_exit(write(to, &a, sizeof(a)) == sizeof(a) ? 0 : 1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * GP_S + (uint64_t)now.tv_nsec;
}

static int hear(int fd, uint64_t patience_ns, struct answer *ret)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t until_ns = now_ns() + patience_ns, now;
	int n = 0;

	do {
		now = now_ns();
		n = now < until_ns ? poll(&ready, 1, (int)((until_ns - now + GP_MS - 1) / GP_MS)) : 0;
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ETIMEDOUT;
	return read(fd, ret, sizeof(*ret)) == sizeof(*ret) ? ret->r : -EIO;
}

static int ask(const struct question *q, uint64_t patience_ns, struct answer *ret)
{
	pid_t pid, stepd = getpid();
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		answer_and_exit(q, ends[1], stepd);
	r = -errno;
	close(ends[1]);
	if (pid > 0) {
		r = hear(ends[0], patience_ns, ret);
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return r;
}

int gp_slurm_job_get(uint32_t job, uint64_t patience_ns, struct gp_slurm_job *ret)
{
	const struct question q = { .ask = get_job, .job = job };
	struct answer a;
	int r = ask(&q, patience_ns, &a);

	if (r == 0)
		*ret = a.job;
	return r;
}

int gp_slurm_job_comment(uint32_t job, const char *entry, uint64_t patience_ns)
{
	const struct question q = { .ask = add_to_comment, .job = job, .entry = entry };
	struct answer a;

	return ask(&q, patience_ns, &a);
}
