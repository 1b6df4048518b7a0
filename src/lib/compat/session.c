// SPDX-License-Identifier: MIT
#include "lib/compat/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNTOUCHED 1 /* what is refused as a whole has no statuses */
#define SOME 64     /* queues that a machine usually has no more of */

__attribute__((format(printf, 3, 4))) static int fail(struct session *s, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(s->why, sizeof(s->why), format, args);
	va_end(args);
	return r;
}

static int fail_gone(struct session *s, uint32_t id)
{
	return fail(s, -ESRCH, "the queue with the id %" PRIu32 " has gone: search again", id);
}

/* What libgpreempt says to its own error. */
static int fail_as_told(struct session *s, int r)
{
	const char *told = gp_ctx_errmsg(s->ctx);

	return fail(s, r, "%s", *told ? told : gp_strerror(r));
}

void session_close(struct session *s)
{
	s->ctx = gp_ctx_close(s->ctx);
	s->batch = 0;
	names_part(&s->names);
}

int session_open(struct session *s)
{
	const struct gp_open_opts opts = { .size = sizeof(opts),
					   .errmsg = s->why,
					   .errmsg_size = sizeof(s->why) };
	int r;

	session_close(s);
	r = gp_ctx_open(&opts, &s->ctx);
	s->owner = getpid();
	return r;
}

int session_enter(struct session *s)
{
	s->why[0] = '\0';
	if (!s->users)
		return fail(s, -ENOTCONN, "gpreempt_poc_init() was not called, or did not succeed");
	return s->ctx && s->owner == getpid() ? 0 : session_open(s);
}

static int by_handle(const void *a, const void *b)
{
	const struct gp_queue_info *x = a, *y = b;

	return x->queue < y->queue ? -1 : x->queue > y->queue;
}

/* All there are, though some come meanwhile. */
static int read_list(struct session *s, struct gp_queue_info **ret, size_t *ret_n)
{
	struct gp_queue_info *all = NULL, *more;
	size_t room = SOME;
	int n;

	for (;; room = (size_t)n + SOME) {
		more = realloc(all, room * sizeof(*all));
		if (!more)
			break;
		all = more;
		all[0].size = sizeof(*all);
		n = gp_queue_list(s->ctx, all, room);
		if (n < 0) {
			free(all);
			return fail_as_told(s, n);
		}
		if ((size_t)n <= room) {
			*ret = all;
			*ret_n = (size_t)n;
			return 0;
		}
	}
	free(all);
	return fail(s, -ENOMEM, "there is not enough memory for a list of queues");
}

/*
 * gpreemptd came, went, or was replaced: what was held runs again by then.  A queue's own status may be
 * the same number, so the context is asked: a resume of no queues fails for that reason alone.
 */
static int is_lost(const struct session *s, int r)
{
	return (r == -ECONNRESET || r == -ENODEV) && gp_queue_resume(s->ctx, NULL, 0, NULL) < 0;
}

/* The queues there are, by handle; the names know of them. */
static int list(struct session *s, struct gp_queue_info **ret, size_t *ret_n)
{
	int r = read_list(s, ret, ret_n);

	if (is_lost(s, r)) {
		r = session_open(s);
		if (r == 0)
			r = read_list(s, ret, ret_n);
	}
	if (r < 0)
		return r;
	if (*ret_n)
		qsort(*ret, *ret_n, sizeof(**ret), by_handle);
	names_refresh(&s->names, *ret, *ret_n);
	return 0;
}

static int matches(const struct search *what, const struct gp_queue_info *q)
{
	if (what->pid && q->pid != (uint32_t)what->pid)
		return 0;
	if (what->any_priority)
		return 1;
	return (q->known & GP_KNOWN_PRIORITY) && q->priority >= what->min_priority &&
	       q->priority <= what->max_priority;
}

int session_search(struct session *s, const struct search *what, struct gp_queue_info **ret, size_t *ret_n)
{
	struct gp_queue_info *all;
	size_t n, kept = 0;
	int r = list(s, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (matches(what, &all[i]))
			all[kept++] = all[i];
	r = names_give(&s->names, all, kept);
	if (r < 0) {
		free(all);
		return fail(s, r, "no ids for the queues that were found: %s", gp_strerror(r));
	}
	*ret = all;
	*ret_n = kept;
	return 0;
}

/* By the driver's id: it must be one process's alone. */
static int look_up(struct session *s, uint32_t id, const struct gp_queue_info *all, size_t n,
		   struct name *ret)
{
	const struct gp_queue_info *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (all[i].queue_id != id || !(all[i].known & GP_KNOWN_QUEUE_ID))
			continue;
		if (found)
			return fail(
				s, -ENOTUNIQ,
				"queue id %" PRIu32 " is one of process %" PRIu32
				" and one of process %" PRIu32
				": search, by process if need be, and use the ids that the search returns",
				id, found->pid, all[i].pid);
		found = &all[i];
	}
	if (!found)
		return fail(s, -ENOENT, "no process has a queue with the id %" PRIu32 "; see gpreempt list",
			    id);
	*ret = names_of(found, id);
	return 0;
}

static int find_one(struct session *s, uint32_t id, const struct gp_queue_info *all, size_t n,
		    struct name *ret)
{
	int r = names_find(&s->names, id, ret);

	if (r == -ENOENT)
		return look_up(s, id, all, n, ret);
	return r == -ESRCH ? fail_gone(s, id) : r;
}

/* What is asked for: each queue once, by handle. */
struct asked {
	struct name *items;
	size_t n;
	int r; /* -ESRCH: one has gone, and is not among them */
};

static int compare_handles(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

static void drop_doubles(struct asked *a)
{
	size_t kept = 0;

	if (a->n)
		qsort(a->items, a->n, sizeof(*a->items), compare_handles);
	for (size_t i = 0; i < a->n; i++)
		if (!kept || a->items[kept - 1].handle != a->items[i].handle)
			a->items[kept++] = a->items[i];
	a->n = kept;
}

static int find_all(struct session *s, const uint32_t *ids, size_t n, const struct gp_queue_info *all,
		    size_t nall, struct asked *a)
{
	for (size_t i = 0; i < n; i++) {
		int r = find_one(s, ids[i], all, nall, &a->items[a->n]);

		if (r == 0)
			a->n++;
		else if (r == -ESRCH)
			a->r = r;
		else
			return r;
	}
	drop_doubles(a);
	return 0;
}

/* Whether each id is the name of a queue that is known in this context. */
static int need_no_list(const struct session *s, const uint32_t *ids, size_t n)
{
	struct name name;

	for (size_t i = 0; i < n; i++) {
		int r = names_find(&s->names, ids[i], &name);

		if (r == -ENOENT || (r == 0 && !name.handle))
			return 0;
	}
	return 1;
}

/* The caller frees ret->items. */
static int resolve(struct session *s, const uint32_t *ids, size_t n, struct asked *ret)
{
	struct gp_queue_info *all = NULL;
	size_t nall = 0;
	int r = need_no_list(s, ids, n) ? 0 : list(s, &all, &nall);

	*ret = (struct asked){ 0 };
	if (r < 0)
		return r;
	ret->items = calloc(n + 1, sizeof(*ret->items));
	r = ret->items ? find_all(s, ids, n, all, nall, ret) : fail(s, -ENOMEM, "there is not enough memory");
	free(all);
	if (r < 0)
		free(ret->items);
	return r;
}

/* The first that failed, under the name its caller knows; libgpreempt's sentence has a handle there. */
static int explain(struct session *s, const struct asked *a, const int32_t *status, int r, const char *what)
{
	const char *told = gp_ctx_errmsg(s->ctx), *why = strstr(told, ": ");
	size_t i = 0;

	while (i < a->n && status[i] != r)
		i++;
	if (i == a->n || !why || strncmp(told, "queue ", 6) != 0)
		return fail_as_told(s, r);
	if (r == -ENOENT)
		return fail_gone(s, a->items[i].id);
	return fail(s, r, "queue %" PRIu32 ", of process %" PRIu32 ", cannot be %s: %s", a->items[i].id,
		    a->items[i].pid, what, why + 2);
}

static void note(struct session *s, const struct asked *a, const int32_t *status, int resume,
		 uint64_t *ret_stopped)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct name *one = &a->items[i];

		if (status[i] == -ENOENT)
			names_drop(&s->names, one->handle);
		else if (status[i] == 0 && resume)
			names_release(&s->names, one->handle);
		else if (status[i] == 0)
			names_hold(&s->names, one);
		if (status[i] == 0 && !resume)
			*ret_stopped = one->handle;
	}
}

static int act_on(struct session *s, const struct asked *a, const struct gp_suspend_opts *opts,
		  uint64_t *ret_stopped)
{
	uint64_t *handles = calloc(a->n + 1, sizeof(*handles));
	int32_t *status = calloc(a->n + 1, sizeof(*status));
	int r = -ENOMEM;

	if (!handles || !status || names_reserve(&s->names, a->n) < 0) {
		(void)fail(s, r, "there is not enough memory");
		goto out;
	}
	for (size_t i = 0; i < a->n; i++) {
		handles[i] = a->items[i].handle;
		status[i] = UNTOUCHED;
	}
	r = opts ? gp_queue_suspend(s->ctx, handles, a->n, opts, status)
		 : gp_queue_resume(s->ctx, handles, a->n, status);
	if (!is_lost(s, r))
		note(s, a, status, !opts, ret_stopped);
	if (r < 0)
		r = explain(s, a, status, r, opts ? "suspended" : "resumed");
out:
	free(handles);
	free(status);
	return r;
}

static int act(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts,
	       uint64_t *ret_stopped)
{
	struct asked a;
	int r;

	for (int again = 1;; again--) {
		r = resolve(s, ids, n, &a);
		if (r < 0)
			return r;
		r = a.n ? act_on(s, &a, opts, ret_stopped) : 0;
		free(a.items);
		if (!is_lost(s, r) || !again)
			return r < 0 ? r : a.r;
		r = session_open(s);
		if (r < 0)
			return r;
	}
}

int session_suspend(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts,
		    uint64_t *ret_stopped)
{
	*ret_stopped = 0;
	return act(s, ids, n, opts, ret_stopped);
}

int session_resume(struct session *s, const uint32_t *ids, size_t n)
{
	return act(s, ids, n, NULL, NULL);
}

int session_look(struct session *s, uint32_t id, struct gp_queue_info *ret)
{
	struct gp_queue_info *all;
	struct name name;
	size_t n, i = 0;
	int r = list(s, &all, &n);

	if (r < 0)
		return r;
	r = find_one(s, id, all, n, &name);
	while (r == 0 && i < n && all[i].queue != name.handle)
		i++;
	if (r == 0 && i < n) {
		*ret = all[i];
		ret->queue_id = id;
	} else if (r == 0) {
		r = fail_gone(s, id); /* what is held keeps its name, though nobody lists it */
	}
	free(all);
	return r;
}

/* How many there are; the caller frees them. One that came meanwhile is left out. */
static int read_devices(struct session *s, struct gp_device_info **ret)
{
	int r, n = gp_device_list(s->ctx, NULL, 0);
	struct gp_device_info *all;

	if (n < 0)
		return fail_as_told(s, n);
	all = calloc((size_t)n + 1, sizeof(*all));
	if (!all)
		return fail(s, -ENOMEM, "there is not enough memory for a list of GPUs");
	all[0].size = sizeof(*all);
	r = gp_device_list(s->ctx, all, (size_t)n + 1);
	if (r < 0) {
		free(all);
		return fail_as_told(s, r);
	}
	*ret = all;
	return r < n + 1 ? r : n + 1;
}

/* Its number, or -ENODEV. A gpreemptd that does not tell the drivers' ids may have a queue that does. */
static int device_of_queue(struct session *s, uint32_t gpu_id)
{
	struct gp_queue_info *all;
	size_t n;
	int r = list(s, &all, &n);

	if (r < 0)
		return r;
	r = -ENODEV;
	for (size_t i = 0; i < n; i++)
		if (all[i].gpu_id == gpu_id && gpu_id &&
		    all[i].device <= INT32_MAX) /* else it is not known */
			r = (int)all[i].device;
	free(all);
	return r;
}

/* Its number, or -errno. */
static int find_device(struct session *s, uint32_t gpu_id)
{
	struct gp_device_info *all;
	int n, r = device_of_queue(s, gpu_id); /* first: it finds a gpreemptd that is another now */

	if (r < 0 && r != -ENODEV)
		return r;
	n = read_devices(s, &all);
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		if (all[i].gpu_id == gpu_id && gpu_id)
			r = (int)all[i].device;
	free(all);
	if (r < 0 && gpu_id < (uint32_t)n)
		r = (int)gpu_id;
	return r >= 0 ? r
		      : fail(s, -ENODEV,
			     "no GPU has the driver's id or the number %" PRIu32 "; see gpreempt list --json",
			     gpu_id);
}

int session_reserve(struct session *s, uint32_t gpu_id, uint32_t online_pct, uint32_t offline_pct)
{
	int r = find_device(s, gpu_id);

	if (r < 0)
		return r;
	r = gp_device_reserve(s->ctx, (uint32_t)r, online_pct, offline_pct);
	return r < 0 ? fail_as_told(s, r) : 0;
}

static int every_device_batches(struct session *s)
{
	struct gp_device_info *all;
	int n = read_devices(s, &all), batch = n > 0;

	if (n < 0)
		return 0;
	for (int i = 0; i < n; i++)
		batch = batch && (all[i].caps & GP_CAP_BATCH);
	free(all);
	return batch;
}

/* Asked once: the kernel does not change under a context. */
int session_has_batch(struct session *s)
{
	if (!s->batch)
		s->batch = every_device_batches(s) ? 1 : -1;
	return s->batch == 1;
}

void session_way(struct session *s, uint64_t queue, char way[GP_NAME_LEN])
{
	struct gp_queue_info *all;
	size_t n;

	way[0] = '\0';
	if (read_list(s, &all, &n) < 0) /* no second try: a handle is this context's alone */
		return;
	for (size_t i = 0; i < n; i++)
		if (all[i].queue == queue)
			memcpy(way, all[i].way, GP_NAME_LEN);
	free(all);
}
