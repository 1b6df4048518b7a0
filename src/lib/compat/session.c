// SPDX-License-Identifier: MIT
#include "lib/compat/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->queue_id != y->queue_id)
		return x->queue_id < y->queue_id ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void clear(struct entries *e)
{
	free(e->items);
	*e = (struct entries){ 0 };
}

static void replace(struct entries *e, struct entry *items, size_t n)
{
	free(e->items);
	*e = (struct entries){ items, n };
	if (n)
		qsort(items, n, sizeof(*items), compare);
}

/* How many have this id; the first of them. */
static size_t with_id(const struct entries *e, uint32_t id, const struct entry **ret_first)
{
	size_t low = 0, high = e->n, n = 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (e->items[mid].queue_id < id)
			low = mid + 1;
		else
			high = mid;
	}
	while (low + n < e->n && e->items[low + n].queue_id == id)
		n++;
	if (n)
		*ret_first = &e->items[low];
	return n;
}

static int is_among(const struct entries *e, const struct entry *one)
{
	return e->n && bsearch(one, e->items, e->n, sizeof(*one), compare) != NULL;
}

static void forget(struct session *s)
{
	s->ctx = gp_ctx_close(s->ctx);
	s->searched = s->batch = 0;
	clear(&s->found);
	clear(&s->held);
}

/* The simulated machine only for who asks for it: a program must not take its queues for real ones. */
int session_open(struct session *s)
{
	const char *backend = secure_getenv("GPREEMPT_BACKEND");
	const struct gp_open_opts opts = { .size = sizeof(opts),
					   .backend = backend && *backend ? backend : "kfd" };
	int r;

	forget(s);
	r = gp_ctx_open(&opts, &s->ctx);
	if (r < 0) {
		s->ctx = NULL;
		return r;
	}
	s->owner = getpid();
	return 0;
}

void session_close(struct session *s)
{
	forget(s);
}

int session_enter(struct session *s)
{
	if (!s->users)
		return -ENOTCONN;
	return s->ctx && s->owner == getpid() ? 0 : session_open(s);
}

static int list_queues(struct session *s, struct gp_queue_info **ret, size_t *ret_n)
{
	struct gp_queue_info *all;
	int n = gp_queue_list(s->ctx, NULL, 0);

	if (n < 0)
		return n;
	all = calloc((size_t)n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	all[0].size = sizeof(*all);
	*ret_n = (size_t)n;
	n = gp_queue_list(s->ctx, all, *ret_n);
	if (n < 0) {
		free(all);
		return n;
	}
	if ((size_t)n < *ret_n)
		*ret_n = (size_t)n;
	*ret = all;
	return 0;
}

/* Once more after gpreemptd came, went, or was replaced: what was held runs again by then. */
static int is_lost(int r)
{
	return r == -ECONNRESET || r == -ENODEV;
}

static int list_again(struct session *s, struct gp_queue_info **ret, size_t *ret_n)
{
	int r = list_queues(s, ret, ret_n);

	if (is_lost(r))
		r = session_open(s);
	else
		return r;
	return r < 0 ? r : list_queues(s, ret, ret_n);
}

static int matches(const struct search *what, const struct gp_queue_info *q)
{
	if (!(q->known & GP_KNOWN_QUEUE_ID) || (what->pid && q->pid != (uint32_t)what->pid))
		return 0;
	if (what->any_priority)
		return 1;
	return (q->known & GP_KNOWN_PRIORITY) && q->priority >= what->min_priority &&
	       q->priority <= what->max_priority;
}

static int remember(struct session *s, const struct search *what, const struct gp_queue_info *all, size_t n)
{
	struct entry *items = calloc(n + 1, sizeof(*items));

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		items[i] = (struct entry){ all[i].queue_id, all[i].pid, all[i].queue };
	replace(&s->found, items, n);
	s->last = *what;
	s->searched = 1;
	return 0;
}

int session_search(struct session *s, const struct search *what, struct gp_queue_info **ret, size_t *ret_n)
{
	struct gp_queue_info *all;
	size_t n, kept = 0;
	int r = list_again(s, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (matches(what, &all[i]))
			all[kept++] = all[i];
	r = remember(s, what, all, kept);
	if (r < 0 || !ret) {
		free(all);
		return r;
	}
	*ret = all;
	*ret_n = kept;
	return 0;
}

static int search_again(struct session *s)
{
	const struct search anybody = { .any_priority = 1 };
	const struct search what = s->searched ? s->last : anybody;

	return session_search(s, &what, NULL, NULL);
}

static int find_one(const struct entries *e, uint32_t id, struct entry *ret)
{
	const struct entry *first;
	size_t n = with_id(e, id, &first);

	if (n == 1)
		*ret = *first;
	return n == 1 ? 0 : n ? -ENOTUNIQ : -ENOENT;
}

/*
 * Of the held ones, if resuming: a search in between must not keep its program from
 * resuming what it suspended.  Where two processes' are held, the last search decides.
 */
static int find_for(struct session *s, uint32_t id, int resume, struct entry *ret)
{
	const struct entry *held;
	size_t n = resume ? with_id(&s->held, id, &held) : 0, both = 0;

	if (!n)
		return find_one(&s->found, id, ret);
	if (n == 1) {
		*ret = *held;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_among(&s->found, &held[i])) {
			*ret = held[i];
			both++;
		}
	}
	return both == 1 ? 0 : -ENOTUNIQ;
}

/* Each queue once, by handle. */
static int find_all(struct session *s, const uint32_t *ids, size_t n, int resume, struct entries *ret)
{
	struct entry *items = calloc(n + 1, sizeof(*items));
	size_t kept = 0;
	int r = items ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++)
		r = find_for(s, ids[i], resume, &items[i]);
	if (r < 0) {
		free(items);
		return r;
	}
	if (n)
		qsort(items, n, sizeof(*items), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || compare(&items[i - 1], &items[i]))
			items[kept++] = items[i];
	*ret = (struct entries){ items, kept };
	return 0;
}

/* An id nobody found may be a new queue's: look once more before saying so. */
static int resolve(struct session *s, const uint32_t *ids, size_t n, int resume, struct entries *ret)
{
	int r = s->searched ? find_all(s, ids, n, resume, ret) : -ENOENT;

	if (r != -ENOENT)
		return r;
	r = search_again(s);
	return r < 0 ? r : find_all(s, ids, n, resume, ret);
}

/* The held ones are those that were, less what was asked for, and with it where it was suspended. */
static int note_held(struct session *s, const struct entries *asked, const int32_t *status, int resume)
{
	struct entry *now = calloc(s->held.n + asked->n + 1, sizeof(*now));
	size_t n = 0;

	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < s->held.n; i++)
		if (!is_among(asked, &s->held.items[i]))
			now[n++] = s->held.items[i];
	for (size_t i = 0; i < asked->n; i++)
		if (resume ? status[i] < 0 && status[i] != -ENOENT : status[i] == 0)
			now[n++] = asked->items[i];
	replace(&s->held, now, n);
	return 0;
}

static int act_on(struct session *s, const struct entries *asked, const struct gp_suspend_opts *opts)
{
	uint64_t *handles = calloc(asked->n + 1, sizeof(*handles));
	int32_t *status = calloc(asked->n + 1, sizeof(*status));
	int r = -ENOMEM;

	if (!handles || !status)
		goto out;
	for (size_t i = 0; i < asked->n; i++)
		handles[i] = asked->items[i].handle;
	r = opts ? gp_queue_suspend(s->ctx, handles, asked->n, opts, status)
		 : gp_queue_resume(s->ctx, handles, asked->n, status);
	if (!is_lost(r))
		(void)note_held(s, asked, status, !opts); /* on no memory: what was held before */
out:
	free(handles);
	free(status);
	return r;
}

static int act(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts)
{
	struct entries asked;
	int r;

	for (int again = 1;; again--) {
		r = resolve(s, ids, n, !opts, &asked);
		if (r < 0)
			return r;
		r = act_on(s, &asked, opts);
		free(asked.items);
		if (!is_lost(r) || !again)
			return r == -ENOENT ? -ESRCH : r;
		if (session_open(s) < 0)
			return r;
	}
}

int session_suspend(struct session *s, const uint32_t *ids, size_t n, const struct gp_suspend_opts *opts)
{
	return act(s, ids, n, opts);
}

int session_resume(struct session *s, const uint32_t *ids, size_t n)
{
	return act(s, ids, n, NULL);
}

int session_look(struct session *s, uint32_t queue_id, struct gp_queue_info *ret)
{
	struct gp_queue_info *all;
	struct entries one;
	size_t n;
	int r = resolve(s, &queue_id, 1, 0, &one);

	if (r < 0)
		return r;
	r = list_again(s, &all, &n);
	if (r == 0) {
		r = -ESRCH;
		for (size_t i = 0; i < n; i++) {
			if (all[i].pid == one.items[0].pid && all[i].queue_id == queue_id) {
				*ret = all[i];
				r = 0;
			}
		}
		free(all);
	}
	free(one.items);
	return r;
}

int session_device(struct session *s, uint32_t gpu_id, uint32_t *ret_device)
{
	struct gp_queue_info *all;
	size_t n;
	int devices, r = list_again(s, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (all[i].gpu_id == gpu_id) {
			*ret_device = all[i].device;
			free(all);
			return 0;
		}
	}
	free(all);
	devices = gp_device_list(s->ctx, NULL, 0);
	if (devices < 0)
		return devices;
	if (gpu_id >= (uint32_t)devices)
		return -ENODEV;
	*ret_device = gpu_id;
	return 0;
}

static int every_device_batches(struct session *s)
{
	struct gp_device_info *all;
	int n = gp_device_list(s->ctx, NULL, 0), batch = n > 0;

	if (n <= 0)
		return 0;
	all = calloc((size_t)n, sizeof(*all));
	if (!all)
		return 0;
	all[0].size = sizeof(*all);
	if (gp_device_list(s->ctx, all, (size_t)n) != n)
		batch = 0;
	for (int i = 0; i < n; i++)
		batch = batch && (all[i].caps & GP_CAP_BATCH);
	free(all);
	return batch;
}

/* Asked once: neither kernel nor agents change under a context. */
int session_has_batch(struct session *s, const char **ret_way)
{
	struct gp_queue_info *all;
	size_t n;

	if (!s->batch && list_again(s, &all, &n) == 0) {
		s->way[0] = '\0';
		for (size_t i = 0; i < n && !s->way[0]; i++)
			memcpy(s->way, all[i].way, sizeof(s->way));
		free(all);
		s->batch = every_device_batches(s) ? 1 : -1;
	}
	*ret_way = s->way;
	return s->batch > 0;
}
