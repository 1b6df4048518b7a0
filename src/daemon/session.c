// SPDX-License-Identifier: MIT
#include "daemon/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define END_NS (5 * GP_S) /* for a call that is under way, in the end */

static struct gp_session_batch *batch_of(struct gp_list *pos)
{
	return gp_container(pos, struct gp_session_batch, in);
}

struct gp_session_batch *gp_session_batch(uint32_t n)
{
	struct gp_session_batch *b = calloc(1, sizeof(*b) + n * sizeof(b->items[0]));

	if (!b)
		return NULL;
	gp_list_init(&b->in);
	b->n = n;
	return b;
}

static void free_batches(struct gp_list *list)
{
	gp_list_each_safe(pos, list)
		free(batch_of(pos));
	gp_list_init(list);
}

static void move_all(struct gp_list *from, struct gp_list *to)
{
	gp_list_each_safe(pos, from) {
		gp_list_remove(pos);
		gp_list_append(to, pos);
	}
}

/* In the thread */

/* As much as one call takes: a setting takes one of its own. */
static void take_work(struct gp_session *s)
{
	s->n = 0;
	s->setting.op = 0;
	gp_list_each_safe(pos, &s->todo) {
		const struct gp_session_batch *b = batch_of(pos);

		if (s->setting.op || s->n + b->n > KFD_SESSION_MAX_QUEUES ||
		    (b->setting.op && !gp_list_empty(&s->doing)))
			break;
		s->setting = b->setting;
		for (uint32_t i = 0; i < b->n; i++)
			s->entries[s->n++] = b->items[i].entry;
		gp_list_remove(pos);
		gp_list_append(&s->doing, pos);
	}
}

static int open_again(struct gp_session *s)
{
	if (s->fd >= 0)
		s->ops->close(s->fd);
	s->fd = s->ops->open(s->lease_ns);
	return s->fd < 0 ? s->fd : 0;
}

static int call(struct gp_session *s, uint32_t *ret_cycles)
{
	if (s->setting.op)
		return s->ops->tell(s->fd, &s->setting);
	return s->n ? s->ops->set(s->fd, s->entries, s->n, ret_cycles) : s->ops->renew(s->fd);
}

/* Of a session that has ended nothing was done: the new one does it. */
static void do_work(struct gp_session *s, struct gp_session_batch *ret)
{
	uint64_t begun = gp_clock_ns();

	*ret = (struct gp_session_batch){ .status = s->fd < 0 ? open_again(s) : 0 };
	if (ret->status == 0)
		ret->status = call(s, &ret->cycles);
	if (ret->status == -ESTALE) {
		ret->has_ended = 1;
		ret->status = open_again(s);
		if (ret->status == 0)
			ret->status = call(s, &ret->cycles);
	}
	ret->latency_ns = gp_clock_ns() - begun;
}

/* The first of several tells what counts once. */
static void hand_back(struct gp_session *s, const struct gp_session_batch *outcome)
{
	uint32_t at = 0;

	pthread_mutex_lock(&s->lock);
	gp_list_each(pos, &s->doing) {
		struct gp_session_batch *b = batch_of(pos);
		bool is_first = pos == s->doing.next;

		b->status = outcome->status;
		b->latency_ns = outcome->latency_ns;
		b->has_ended = is_first && outcome->has_ended;
		b->cycles = is_first ? outcome->cycles : 0;
		for (uint32_t i = 0; i < b->n; i++)
			b->items[i].entry = s->entries[at++];
	}
	move_all(&s->doing, &s->done);
	pthread_mutex_unlock(&s->lock);
	(void)eventfd_write(s->watch.fd, 1); /* who is woken while the lock is held has to wait for it */
}

/* Waits until there is some; false: it is to end. */
static bool get_work(struct gp_session *s)
{
	bool ends;

	pthread_mutex_lock(&s->lock);
	while (!s->ends && gp_list_empty(&s->todo))
		pthread_cond_wait(&s->came, &s->lock);
	ends = s->ends;
	if (!ends)
		take_work(s);
	pthread_mutex_unlock(&s->lock);
	return !ends;
}

static void *work(void *arg)
{
	struct gp_session *s = arg;
	struct gp_session_batch outcome;

	while (get_work(s)) {
		do_work(s, &outcome);
		hand_back(s, &outcome);
	}
	if (s->fd >= 0)
		s->ops->close(s->fd); /* a device cycle, if anything was stopped */
	pthread_mutex_lock(&s->lock);
	s->is_over = 1;
	pthread_mutex_unlock(&s->lock);
	(void)eventfd_write(s->watch.fd, 1);
	return NULL;
}

/* In the loop's */

static void tell(void *arg, uint32_t events)
{
	struct gp_session *s = arg;
	struct gp_list all;
	eventfd_t value;

	(void)events;
	(void)eventfd_read(s->watch.fd, &value);
	gp_list_init(&all);
	pthread_mutex_lock(&s->lock);
	move_all(&s->done, &all);
	pthread_mutex_unlock(&s->lock);
	gp_list_each(pos, &all)
		s->fn(s->arg, batch_of(pos));
	free_batches(&all);
}

static int begin(struct gp_session *s)
{
	sigset_t all, before;
	int r;

	s->watch = (struct gp_watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fn = tell, .arg = s };
	r = s->watch.fd < 0 ? -errno : gp_loop_add(s->loop, &s->watch, EPOLLIN);
	if (r < 0)
		return r;
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&s->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void free_all(struct gp_session *s)
{
	free_batches(&s->todo);
	free_batches(&s->done);
	gp_loop_remove(s->loop, &s->watch);
	if (s->watch.fd >= 0)
		close(s->watch.fd);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->came);
	free(s);
}

int gp_session_new(struct gp_loop *loop, const struct gp_session_ops *ops, uint64_t lease_ns,
		   void (*fn)(void *arg, struct gp_session_batch *done), void *arg, struct gp_session **ret)
{
	struct gp_session *s = calloc(1, sizeof(*s));
	struct gp_session_batch *first = gp_session_batch(0);
	int r = -ENOMEM;

	if (!s || !first) {
		free(s);
		free(first);
		return r;
	}
	s->ops = ops;
	s->loop = loop;
	s->lease_ns = lease_ns;
	s->fn = fn;
	s->arg = arg;
	s->fd = -1;
	gp_list_init(&s->todo);
	gp_list_init(&s->doing);
	gp_list_init(&s->done);
	gp_list_append(&s->todo, &first->in);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->came, NULL);
	r = begin(s);
	if (r < 0)
		free_all(s);
	else
		*ret = s;
	return r;
}

static bool is_over(struct gp_session *s)
{
	int over;

	pthread_mutex_lock(&s->lock);
	over = s->is_over;
	pthread_mutex_unlock(&s->lock);
	return over;
}

void gp_session_end(struct gp_session *s)
{
	if (!s || s->end_ns)
		return;
	s->end_ns = gp_clock_ns() + END_NS;
	pthread_mutex_lock(&s->lock);
	s->ends = 1;
	pthread_cond_signal(&s->came);
	pthread_mutex_unlock(&s->lock);
}

void gp_session_free(struct gp_session *s)
{
	eventfd_t value;
	uint64_t now;

	if (!s)
		return;
	gp_session_end(s);
	while (!is_over(s) && (now = gp_clock_ns()) < s->end_ns) {
		struct pollfd told = { .fd = s->watch.fd, .events = POLLIN };

		(void)poll(&told, 1, (int)((s->end_ns - now) / GP_MS) + 1);
		(void)eventfd_read(s->watch.fd, &value);
	}
	if (is_over(s)) {
		(void)pthread_join(s->thread, NULL);
		free_all(s);
	} else {
		gp_loop_remove(s->loop, &s->watch); /* the thread has it still */
	}
}

void gp_session_give(struct gp_session *s, struct gp_session_batch *batch)
{
	pthread_mutex_lock(&s->lock);
	gp_list_append(&s->todo, &batch->in);
	pthread_mutex_unlock(&s->lock);
	pthread_cond_signal(&s->came);
}

void gp_session_renew(struct gp_session *s)
{
	struct gp_session_batch *empty;
	int is_idle;

	pthread_mutex_lock(&s->lock);
	is_idle = gp_list_empty(&s->todo) && gp_list_empty(&s->doing);
	pthread_mutex_unlock(&s->lock);
	empty = is_idle ? gp_session_batch(0) : NULL;
	if (empty)
		gp_session_give(s, empty);
}
