// SPDX-License-Identifier: MIT
/* The notes' calls, both halves. libgpreempt_poc_v2.so passes its own on to these: one state for both. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpreempt/compat/gpreempt_poc_v2.h"
#include "lib/compat/session.h"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session session;
static _Thread_local char message[sizeof(session.why)];

/* -1 and errno of a negative errno, with its sentence. */
static int result(int r, const char *why)
{
	if (r >= 0)
		return 0;
	(void)snprintf(message, sizeof(message), "%s", *why ? why : gp_strerror(r));
	errno = -r;
	return -1;
}

static int enter(void)
{
	(void)pthread_mutex_lock(&lock); /* cannot fail: it is nobody's twice */
	return session_enter(&session);
}

static int leave(int r)
{
	r = result(r, session.why);
	(void)pthread_mutex_unlock(&lock); /* cannot fail, and leaves errno alone */
	return r;
}

EXPORT const char *gpreempt_poc_errmsg(void)
{
	return message;
}

void poc_forget_ids(void)
{
	names_free(&session.names);
}

size_t poc_known_ids(void)
{
	return session.names.n;
}

EXPORT int gpreempt_poc_init(void)
{
	int r = 0;

	(void)pthread_mutex_lock(&lock);
	session.why[0] = '\0';
	if (!session.users)
		r = session_open(&session);
	if (r == 0)
		session.users++;
	return leave(r);
}

EXPORT void gpreempt_poc_cleanup(void)
{
	(void)pthread_mutex_lock(&lock);
	if (session.users && --session.users == 0)
		session_close(&session);
	(void)pthread_mutex_unlock(&lock);
}

/* ret_stopped: one of those that are suspended now, or 0. */
static int suspend(uint32_t *ids, uint32_t n, const struct gp_suspend_opts *opts, uint64_t *ret_stopped)
{
	*ret_stopped = 0;
	if (!n)
		return 0;
	return ids ? session_suspend(&session, ids, n, opts, ret_stopped) : -EINVAL;
}

/*
 * The grace is taken and left unused.  Only the debugger's suspension and a session have one, which ends
 * after about 121 us at most: all it would do is make each stop later.  It is no timeout either: one whose
 * end is an error would be.
 */
static struct gp_suspend_opts with_grace(uint32_t grace_us, const char *way)
{
	(void)grace_us;
	return (struct gp_suspend_opts){ .size = sizeof(struct gp_suspend_opts), .way = way };
}

EXPORT int gpreempt_suspend_queues(uint32_t *queue_ids, uint32_t num_queues, uint32_t grace_period_us)
{
	const struct gp_suspend_opts opts = with_grace(grace_period_us, NULL);
	uint64_t stopped;
	int r = enter();

	return leave(r < 0 ? r : suspend(queue_ids, num_queues, &opts, &stopped));
}

static int resume(uint32_t *ids, uint32_t n)
{
	if (!n)
		return 0;
	return ids ? session_resume(&session, ids, n) : -EINVAL;
}

EXPORT int gpreempt_resume_queues(uint32_t *queue_ids, uint32_t num_queues)
{
	int r = enter();

	return leave(r < 0 ? r : resume(queue_ids, num_queues));
}

static void describe(const struct gp_queue_info *q, gpreempt_queue_info_t *ret)
{
	*ret = (gpreempt_queue_info_t){
		.queue_id = q->queue_id,
		.priority = q->known & GP_KNOWN_PRIORITY ? q->priority : UINT32_MAX,
		.gpu_id = q->gpu_id,
		.process_id = (pid_t)q->pid,
		.is_active = q->state == GP_QUEUE_RUNNING && (q->active || !(q->known & GP_KNOWN_ACTIVE)),
		.queue_address = q->known & GP_KNOWN_RING ? q->ring : 0,
	};
}

static int search(const struct search *what, gpreempt_queue_info_t **ret, uint32_t *ret_n)
{
	gpreempt_queue_info_t *list = NULL;
	struct gp_queue_info *all;
	size_t n;
	int r = session_search(&session, what, &all, &n);

	if (r < 0)
		return r;
	if (n)
		list = calloc(n, sizeof(*list));
	for (size_t i = 0; list && i < n; i++)
		describe(&all[i], &list[i]);
	free(all);
	if (n && !list)
		return -ENOMEM;
	*ret = list;
	*ret_n = (uint32_t)n;
	return 0;
}

static int find(const struct search *what, gpreempt_queue_info_t **queues, uint32_t *num_queues)
{
	int r = enter();

	if (r == 0)
		r = queues && num_queues ? search(what, queues, num_queues) : -EINVAL;
	return leave(r);
}

EXPORT int gpreempt_get_all_queues(gpreempt_queue_info_t **queues, uint32_t *num_queues)
{
	return find(&(struct search){ .any_priority = 1 }, queues, num_queues);
}

EXPORT int gpreempt_find_queues_by_priority(uint32_t min_prio, uint32_t max_prio,
					    gpreempt_queue_info_t **queues, uint32_t *num_queues)
{
	const struct search what = { .min_priority = min_prio, .max_priority = max_prio };

	return min_prio > max_prio ? result(-EINVAL, "min_prio is more than max_prio")
				   : find(&what, queues, num_queues);
}

EXPORT int gpreempt_find_queues_by_process(pid_t pid, gpreempt_queue_info_t **queues, uint32_t *num_queues)
{
	const struct search what = { .pid = pid, .any_priority = 1 };

	return pid <= 0 ? result(-EINVAL, "a pid is a positive number") : find(&what, queues, num_queues);
}

EXPORT int gpreempt_get_queue_status(uint32_t queue_id, gpreempt_queue_info_t *info)
{
	struct gp_queue_info q;
	int r = enter();

	if (r == 0)
		r = info ? session_look(&session, queue_id, &q) : -EINVAL;
	if (r == 0)
		describe(&q, info);
	return leave(r);
}

EXPORT void gpreempt_free_queue_info(gpreempt_queue_info_t *queues)
{
	free(queues);
}

static const struct fallback {
	const char *way, *text;
} fallbacks[] = {
	{ "dbg", "the debugger's SUSPEND_QUEUES, one device cycle per process" },
	{ "park", "DISABLE_CHANNELS through the agents, one call per process" },
	{ "private", "its PREEMPT_QUEUE, one call per queue" },
	{ NULL, "UPDATE_QUEUE through the agents, one device cycle per queue" },
};

/*
 * The one line that a library of this project ever prints, because the notes ask for it:
 * a program that counts on one call for many queues should learn that it is not so here.
 * Of a queue that was stopped: who was refused was told so, and nothing else was done.
 */
static void tell_fallback(uint64_t stopped)
{
	static int told;
	const char *quiet = secure_getenv("GPREEMPT_QUIET");
	const struct fallback *f = fallbacks;
	char way[GP_NAME_LEN];

	if (told || (quiet && !strcmp(quiet, "1")))
		return;
	told = 1;
	session_way(&session, stopped, way);
	while (f->way && strcmp(way, f->way))
		f++;
	fprintf(stderr, "gpreempt: this kernel has no batch call; using %s\n", f->text);
}

static int batch_unmap(uint32_t *ids, uint32_t n, uint32_t grace_us)
{
	struct gp_suspend_opts opts = with_grace(grace_us, NULL);
	uint64_t stopped;
	int batch, r = suspend(ids, n, &opts, &stopped);

	batch = session_has_batch(&session);
	if (batch && (r == -ENOTSUP || r == -EIO)) {
		batch = 0;
		opts.way = "update";
		r = suspend(ids, n, &opts, &stopped);
	}
	if (!batch && stopped)
		tell_fallback(stopped);
	return r;
}

EXPORT int gpreempt_batch_unmap_queues(uint32_t *qids, uint32_t num, uint32_t grace_us)
{
	int r = enter();

	return leave(r < 0 ? r : batch_unmap(qids, num, grace_us));
}

/* Each queue goes back the way it went: whoever stopped it knows which that was. */
EXPORT int gpreempt_fast_remap_queues(uint32_t *qids, uint32_t num)
{
	return gpreempt_resume_queues(qids, num);
}

EXPORT int gpreempt_set_hqd_reservation(uint32_t gpu_id, uint32_t online_pct, uint32_t offline_pct)
{
	int r = enter();

	return leave(r < 0 ? r : session_reserve(&session, gpu_id, online_pct, offline_pct));
}
