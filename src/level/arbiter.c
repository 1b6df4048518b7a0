// SPDX-License-Identifier: MIT
/*
 * Whom the engine holds: while an online queue has work, and for a little after, the offline queues of its
 * device; but none for longer than a second without a slice.  One thread sees that online work has ended and
 * that leases have; whoever begins online work holds the others at once, without it.
 */
#include "level/internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/old_glibc.h"

#define LINGER_NS (200 * GP_US) /* the next request may follow at once */
#define STARVE_NS GP_S
#define SLICE_NS (10 * GP_MS)
#define KEPT_NS GP_LEVEL_CHUNK_NS
#define STACK (128u << 10)

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* Its runtime does not take a launch, and waits itself: as for a module that is loaded, before which all work
 * of the context must end, also what is held. */
static int is_kept(const struct gp_level_queue *q, uint64_t now_ns)
{
	return q->kept_ns && now_ns >= q->kept_ns + KEPT_NS;
}

/* Since a queue has no work it lingers. One that is held itself needs nobody to wait for it. */
static int is_active(const struct gp_level_queue *q, uint64_t now_ns)
{
	if (q->client_class != GP_CLASS_ONLINE || q->is_manual || q->held || is_kept(q, now_ns))
		return 0;
	return __atomic_load_n(&q->is_busy, __ATOMIC_SEQ_CST) || now_ns < q->idle_ns + LINGER_NS;
}

static int has_online_work(uint64_t device, uint64_t now_ns)
{
	gp_list_each(at, &gp_engine.queues) {
		const struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		if (q->is.device == device && is_active(q, now_ns))
			return 1;
	}
	return 0;
}

static int must_be_held(struct gp_level_queue *q, uint64_t now_ns)
{
	if (q->client_class != GP_CLASS_OFFLINE || q->is_manual || q->level == GP_LEVEL_NONE)
		return 0;
	if (now_ns < q->slice_end_ns || !has_online_work(q->is.device, now_ns))
		return 0;
	if (q->held & 1u << GP_HOLDER_ENGINE && now_ns - q->held_ns >= STARVE_NS) {
		q->slice_end_ns = now_ns + SLICE_NS;
		return 0;
	}
	return 1;
}

void gp_arbiter_look(uint64_t now_ns)
{
	gp_list_each(at, &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);
		int is_held = (q->held & 1u << GP_HOLDER_ENGINE) != 0, must = must_be_held(q, now_ns);

		if (must == is_held || (must && gp_arbiter_start() < 0)) /* who would let it go? */
			continue;
		q->lease_end_ns[GP_HOLDER_ENGINE] = UINT64_MAX; /* STARVE_NS is its lease */
		q->held_ns = now_ns;
		gp_engine_mark(q, GP_HOLDER_ENGINE, must);
	}
}

/* Launches count before they are made: a queue that looks idle is, or has just been told of. */
static void note_idle(struct gp_level_queue *q)
{
	if (!__atomic_load_n(&q->is_busy, __ATOMIC_SEQ_CST) || !gp_engine_has_ended(q))
		return;
	q->idle_ns = gp_level_now(); /* its end may be later than the beginning of this look */
	__atomic_store_n(&q->is_busy, 0, __ATOMIC_SEQ_CST);
	if (!gp_engine_has_ended(q))
		__atomic_store_n(&q->is_busy, 1, __ATOMIC_SEQ_CST);
}

static void note_kept(struct gp_level_queue *q, uint64_t now_ns)
{
	uint64_t begun = __atomic_load_n(&q->begun, __ATOMIC_SEQ_CST), taken;

	if (!q->ops->taken)
		return;
	taken = q->ops->taken(q->door);
	if (taken >= begun)
		q->kept_ns = 0;
	else if (!q->kept_ns || taken != q->taken)
		q->kept_ns = now_ns;
	q->taken = taken;
}

static void end_leases(struct gp_level_queue *q, uint64_t now_ns)
{
	for (uint32_t i = 0; i < GP_HOLDERS; i++)
		if (q->held & 1u << i && now_ns >= q->lease_end_ns[i])
			gp_engine_mark(q, i, 0);
}

/* When something is to be done of this queue without a change before. */
static uint64_t next_ns(const struct gp_level_queue *q, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < GP_HOLDERS; i++)
		if (q->held & 1u << i)
			next = sooner(next, q->lease_end_ns[i]);
	if (q->held & 1u << GP_HOLDER_ENGINE)
		next = sooner(next, q->held_ns + STARVE_NS);
	if (now_ns < q->slice_end_ns)
		next = sooner(next, q->slice_end_ns);
	if (q->kept_ns && !is_kept(q, now_ns))
		next = sooner(next, q->kept_ns + KEPT_NS);
	if (q->idle_ns && now_ns < q->idle_ns + LINGER_NS)
		next = sooner(next, q->idle_ns + LINGER_NS);
	return next;
}

/* An online queue that has work, whose end is waited for; and when to look at the latest. */
static struct gp_level_queue *look_at_all(uint64_t now_ns, uint64_t *ret_next)
{
	struct gp_level_queue *busy = NULL;

	*ret_next = UINT64_MAX;
	gp_list_each(at, &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		end_leases(q, now_ns);
		note_idle(q);
		note_kept(q, now_ns);
		if (__atomic_load_n(&q->is_busy, __ATOMIC_SEQ_CST))
			busy = q;
	}
	gp_arbiter_look(now_ns);
	gp_list_each(at, &gp_engine.queues)
		*ret_next = sooner(*ret_next, next_ns(gp_container(at, struct gp_level_queue, link), now_ns));
	return busy;
}

/* Those that were let go, of runtimes that wait themselves. If one goes meanwhile the next turn comes at
 * once. */
static void release_all(void)
{
	struct gp_list *at;

	gp_engine_lock();
	at = gp_engine.queues.next;
	while (at != &gp_engine.queues) {
		struct gp_level_queue *q = gp_container(at, struct gp_level_queue, link);

		if (q->ops->release) {
			q->users++;
			gp_engine_unlock();
			gp_engine_release(q);
			gp_engine_lock();
			at = q->is_gone ? &gp_engine.queues : at->next;
			gp_engine_put(q);
		} else {
			at = at->next;
		}
	}
	gp_engine_unlock();
}

static void turn(void)
{
	uint32_t changes = __atomic_load_n(&gp_engine.changes, __ATOMIC_SEQ_CST);
	uint64_t now, next, begun = 0;
	struct gp_level_queue *busy;

	gp_engine_lock();
	now = gp_level_now();
	busy = look_at_all(now, &next);
	if (busy && gp_engine_enter(busy) == 0)
		begun = __atomic_load_n(&busy->begun, __ATOMIC_SEQ_CST);
	gp_engine_unlock();
	release_all();
	next = next > now ? next - now : 0;
	if (!busy) {
		gp_engine_sleep(changes, sooner(next, GP_S));
		return;
	}
	busy->ops->wait(busy->door, begun, sooner(next, GP_LEVEL_CHUNK_NS));
	gp_engine_leave(busy);
}

static void *watch(void *unused)
{
	(void)unused;
	for (;;)
		turn();
	return NULL;
}

int gp_arbiter_start(void)
{
	uint64_t all = UINT64_MAX, before; /* signals, as the kernel keeps them */
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (gp_engine.is_awake)
		return 0;
	if (gp_engine.is_foreign)
		return -EPERM;
	r = -pthread_attr_init(&attr);
	if (r < 0)
		return r;
	(void)pthread_attr_setstacksize(&attr, STACK); /* else it has the usual one */
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before,
		      sizeof(all)); /* the program's are its own */
	r = -pthread_create(&thread, &attr, watch, NULL);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	(void)pthread_attr_destroy(&attr);
	gp_engine.is_awake = r == 0;
	return r;
}
