// SPDX-License-Identifier: MIT
#include "agent/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/old_glibc.h"
#include "backend/guard.h"

#define SECOND 1000000000ull
#define FIRST_PAUSE (SECOND / 5)
#define LAST_PAUSE (5 * SECOND)
#define GREETING_NS (20 * SECOND) /* how long a daemon may take to say WELCOME */
#define STUCK_NS SECOND           /* how long a full socket is waited for */
#define BLIND_NS (SECOND / 5)     /* between two looks at descriptors that cannot be polled */
#define WATCH_NS (SECOND / 2)     /* between two looks at whether the program is still there */
#define STACK (256u << 10)
#define MOST_CPUS 8192
#define EVENTS_AT_ONCE 16
#define MESSAGES_AT_ONCE 64

static struct {
	char sockets[2][108]; /* in the order in which they are tried; empty: none */
	uint32_t ways;        /* that the environment names */
} config;

static struct gp_agent *agent; /* made once in a process, and left to its children */
static int started;            /* pid of the process that has the thread */

static uint32_t named_ways(const char *names)
{
	char copy[128], *rest = NULL;
	uint32_t ways = 0, way;

	(void)snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest))
		if (gp_way_by_name(name, &way) == 0)
			ways |= way;
	return ways;
}

void gp_agent_configure(void)
{
	const char *named = secure_getenv("GPREEMPT_SOCKET"), *run = secure_getenv("XDG_RUNTIME_DIR");
	const char *ways = secure_getenv("GPREEMPT_WAYS");

	(void)snprintf(config.sockets[0], sizeof(config.sockets[0]), "%s",
		       named && *named ? named : GP_WIRE_SOCKET);
	config.sockets[1][0] = '\0';
	if (!(named && *named) && run && *run)
		(void)snprintf(config.sockets[1], sizeof(config.sockets[1]), "%s/" GP_WIRE_USER_SOCKET, run);
	config.ways = ways ? named_ways(ways) : 0;
}

int gp_agent_send(struct gp_agent *a, const struct gp_msg *msg)
{
	return gp_link_send(&a->link, msg, a->send_end_ns);
}

int gp_agent_driver(struct gp_agent *a)
{
	if (!gp_held_is_ours(&a->driver))
		a->driver = gp_held_take(a->ops->open(a->own));
	return a->driver.fd;
}

/* Everything runs again, or is tried again later. */
static void give_back(struct gp_agent *a)
{
	uint64_t now = gp_now_ns();
	int r = a->ops->stopped(a->own) ? a->ops->resume_all(a->own, gp_agent_driver(a)) : 0;

	a->owed_pause_ns = r < 0 && a->owed_ns ? a->owed_pause_ns * 2 : FIRST_PAUSE;
	if (a->owed_pause_ns > LAST_PAUSE)
		a->owed_pause_ns = LAST_PAUSE;
	a->owed_ns = r < 0 ? now + a->owed_pause_ns : 0;
}

static void look_later(struct gp_agent *a)
{
	a->retry_ns = gp_now_ns() + a->pause_ns;
	a->pause_ns = a->pause_ns < LAST_PAUSE / 2 ? a->pause_ns * 2 : LAST_PAUSE;
}

static void lose(struct gp_agent *a)
{
	give_back(a);
	gp_link_close(&a->link);
	if (a->is_welcome)
		a->pause_ns = FIRST_PAUSE;
	a->is_welcome = 0;
	a->drain.is_on = 0;
	look_later(a);
}

static int is_connected(const struct gp_agent *a)
{
	return a->link.socket.fd >= 0;
}

static int send_hello(struct gp_agent *a)
{
	struct gp_msg_hello *hello = &a->msg.hello;
	gp_signals blocked;

	if (gp_agent_driver(a) < 0)
		return -ENODEV; /* the application may create queues, but we could not stop them */
	a->msg.type = GP_MSG_HELLO;
	a->msg.serial = 0;
	*hello = (struct gp_msg_hello){ .role = GP_ROLE_AGENT,
					.ways = a->ops->ways | (config.ways & a->ops->named_ways),
					.pid = (uint32_t)getpid(),
					.features = GP_FEATURES };
	(void)snprintf(hello->name, sizeof(hello->name), "%s", program_invocation_short_name);
	blocked = gp_guard_lock(&a->guard);
	gp_claim_put(hello, &a->who);
	a->told_seen = a->who.seen;
	a->told_changes = a->changes;
	gp_guard_unlock(&a->guard, blocked);
	return gp_agent_send(a, &a->msg);
}

static void look_for_daemon(struct gp_agent *a)
{
	int r = -ENOENT;

	if (gp_now_ns() < a->retry_ns)
		return;
	for (size_t i = 0; r < 0 && i < 2 && config.sockets[i][0]; i++)
		r = gp_link_open(&a->link, config.sockets[i]);
	if (r == 0)
		r = send_hello(a);
	a->heard_ns = gp_now_ns();
	if (r == 0)
		return;
	gp_link_close(&a->link);
	look_later(a);
}

static int send_queue(struct gp_agent *a, const struct gp_own_queue *q)
{
	a->msg.type = GP_MSG_QUEUE;
	a->msg.serial = 0;
	a->msg.queue = (struct gp_msg_queue){ .queue = q->queue,
					      .ring = q->ring,
					      .ring_size = q->ring_size,
					      .queue_id = q->queue_id,
					      .gpu_id = q->gpu_id,
					      .kind = q->kind,
					      .priority = q->priority,
					      .percent = q->percent,
					      .stopped = q->stopped };
	return gp_agent_send(a, &a->msg);
}

static int send_gone(struct gp_agent *a, uint64_t queue)
{
	a->msg.type = GP_MSG_GONE;
	a->msg.serial = 0;
	a->msg.queue = (struct gp_msg_queue){ .queue = queue };
	return gp_agent_send(a, &a->msg);
}

static int send_event(struct gp_agent *a, const struct gp_own_event *e)
{
	if (e->kind == GP_OWN_REMOVED)
		gp_sampler_remove(&a->sampler, e->queue.queue);
	else if (e->queue.rptr_address) /* else nobody could tell whether it is busy */
		gp_sampler_add(&a->sampler, e->queue.queue, gp_now_ns());
	if (!a->is_welcome)
		return 0; /* all are told with the welcome */
	return e->kind == GP_OWN_REMOVED ? send_gone(a, e->queue.queue) : send_queue(a, &e->queue);
}

static void tell_events(struct gp_agent *a)
{
	struct gp_own_event events[EVENTS_AT_ONCE];
	int n;

	do {
		n = a->ops->events(a->own, events, EVENTS_AT_ONCE);
		for (int i = 0; i < n; i++)
			if (send_event(a, &events[i]) < 0)
				lose(a);
	} while (n == EVENTS_AT_ONCE);
}

static int welcome(struct gp_agent *a)
{
	int n, r = 0;

	/* A lease of no length, or of no end, is none. */
	a->lease_ns = a->msg.welcome.lease_ns;
	if (!a->lease_ns || a->lease_ns > 3600 * SECOND)
		a->lease_ns = SECOND;
	if (a->lease_ns < SECOND / 100)
		a->lease_ns = SECOND / 100;
	a->samples = a->msg.welcome.sample;
	a->link.features = a->msg.welcome.features;
	a->pause_ns = FIRST_PAUSE;
	tell_events(a); /* not welcome yet: those are among the ones we tell now */
	a->is_welcome = 1;
	gp_sampler_reset(&a->sampler, a->told_seen == GP_CLASS_ONLINE);
	n = a->ops->queues(a->own, a->queues, GP_OWN_MOST);
	for (int i = 0; i < n && r == 0; i++)
		r = send_queue(a, &a->queues[i]);
	return r;
}

/* 0, or the connection is of no use any more. */
static int handle(struct gp_agent *a)
{
	switch (a->msg.type) {
	case GP_MSG_WELCOME:
		return a->is_welcome ? 0 : welcome(a);
	case GP_MSG_WANTS:
		return a->is_welcome ? gp_agent_do_wants(a, &a->msg) : -EPROTO;
	case GP_MSG_ERROR:
		return a->is_welcome ? 0 : -ECONNREFUSED;
	default:
		return 0; /* PING, or nothing for us: it was heard */
	}
}

static void receive(struct gp_agent *a)
{
	int r = 0;

	for (int i = 0; i < MESSAGES_AT_ONCE && (r == 0 || r == -ENOMSG); i++) {
		r = gp_link_receive(&a->link, &a->msg);
		if (r == 0 || r == -ENOMSG)
			a->heard_ns = gp_now_ns();
		if (r == 0)
			r = handle(a);
	}
	if (r < 0 && r != -EAGAIN && r != -ENOMSG)
		lose(a);
}

static uint64_t lease_end(const struct gp_agent *a)
{
	return a->heard_ns + (a->is_welcome ? a->lease_ns : GREETING_NS);
}

static void check_connection(struct gp_agent *a)
{
	uint32_t changes = __atomic_load_n(&a->changes, __ATOMIC_RELAXED);

	if (changes != a->told_changes) { /* the program is somebody else now */
		lose(a);
		a->retry_ns = 0;
	} else if (!gp_held_is_ours(&a->link.socket)) {
		lose(a);
	} else if (gp_now_ns() >= lease_end(a)) {
		if (!a->is_welcome || a->ops->stopped(a->own))
			lose(a);
		else
			a->heard_ns = gp_now_ns(); /* it may be slow: nobody suffers */
	}
}

/*
 * Where a door rings, queues without work are not looked at.  A ring between the look and the word that it is
 * waited for would be missed: there is one more look after that word.
 */
static void rest(struct gp_agent *a)
{
	uint32_t is_idle = __atomic_load_n(&a->has_door, __ATOMIC_SEQ_CST) && gp_sampler_is_idle(&a->sampler);

	if (__atomic_exchange_n(&a->is_resting, is_idle, __ATOMIC_SEQ_CST) && is_idle)
		gp_sampler_defer(&a->sampler, gp_now_ns());
}

static int sample(struct gp_agent *a)
{
	uint32_t n = gp_sampler_look(&a->sampler, a->ops, a->own, a->changed);
	int r = 0;

	a->send_end_ns = gp_now_ns() + STUCK_NS;
	for (uint32_t i = 0; i < n && r == 0; i++) {
		const struct gp_activity *now = &a->sampler.last[a->changed[i]];

		a->msg.type = GP_MSG_ACTIVITY;
		a->msg.serial = 0;
		a->msg.activity = (struct gp_msg_activity){ .queue = a->sampler.queues[a->changed[i]],
							    .rptr = now->rptr,
							    .wptr = now->wptr,
							    .activity = now->activity };
		r = gp_agent_send(a, &a->msg);
	}
	gp_sampler_plan(&a->sampler, gp_now_ns());
	rest(a);
	return r;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* When something has to be done that is not a message and not a sample. */
static uint64_t next_ns(const struct gp_agent *a)
{
	uint64_t next;

	if (!is_connected(a))
		next = a->owed_ns ? sooner(a->owed_ns, a->retry_ns) : a->retry_ns;
	else if (a->is_welcome && a->drain.is_on)
		next = gp_now_ns() + GP_DRAIN_LOOK_NS;
	else
		next = lease_end(a);
	return sooner(next, a->watch_ns);
}

static uint64_t sample_ns(const struct gp_agent *a)
{
	return a->is_welcome && a->samples ? a->sampler.next_ns : UINT64_MAX;
}

static struct timespec from_now(uint64_t end_ns, uint64_t most_ns)
{
	uint64_t now = gp_now_ns(), ns = end_ns > now ? end_ns - now : 0;

	if (ns > most_ns)
		ns = most_ns;
	return (struct timespec){ .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
}

/* How many of the descriptors have something, or may have; -errno: there is no way to wait. */
static int poll_until(struct pollfd fds[2], uint64_t end_ns)
{
	struct timespec t = from_now(end_ns, UINT64_MAX);
	int n = ppoll(fds, 2, &t, NULL);

	if (n >= 0 || errno == EINTR)
		return n > 0 ? n : 0;
	/* The program's limit on descriptors is lower by now than how many we ask about, or worse. */
	t = from_now(end_ns, BLIND_NS);
	if (nanosleep(&t, NULL) < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < 2; i++)
		fds[i].revents = fds[i].fd >= 0 ? POLLIN : 0;
	return 2;
}

/* While it looks at queues, the thread wakes up on time. Timer slack is a thread's own, and what it starts
 * inherits it; 0 brings back what the thread began with. */
static void keep_time(struct gp_agent *a)
{
	uint32_t is_wanted = sample_ns(a) != UINT64_MAX;

	if (is_wanted != a->is_punctual)
		(void)prctl(PR_SET_TIMERSLACK, is_wanted ? 1ul : 0ul);
	a->is_punctual = is_wanted;
	if (is_wanted)
		gp_sampler_rest(&a->sampler);
}

/* Sleeps until there is something to do, but for a look at the queues now and then. */
static void wait_for_work(struct gp_agent *a)
{
	struct pollfd fds[2] = { { .fd = a->wake_out.fd, .events = POLLIN },
				 { .fd = a->link.socket.fd, .events = POLLIN } };
	uint64_t end = next_ns(a), look;
	char bytes[64];
	int n, r = 0;

	keep_time(a);
	do {
		look = sample_ns(a);
		n = poll_until(fds, sooner(look, end));
		if (n >= 0 && gp_now_ns() >= look)
			r = sample(a);
	} while (n == 0 && r == 0 && gp_now_ns() < end);
	a->is_over |= n < 0;
	if (n > 0 && fds[0].revents && gp_held_is_ours(&a->wake_out))
		(void)!read(a->wake_out.fd, bytes, sizeof(bytes));
	if (!__atomic_load_n(&a->is_resting, __ATOMIC_SEQ_CST))
		gp_sampler_hurry(&a->sampler);
	a->send_end_ns = gp_now_ns() + STUCK_NS;
	if (r < 0)
		lose(a);
	else if (n > 0 && fds[1].revents)
		receive(a);
}

/* What wakes us; made anew if the application closed it. */
static void keep_wake(struct gp_agent *a)
{
	int ends[2];
	gp_signals blocked;

	if (gp_held_is_ours(&a->wake_out) && gp_held_is_ours(&a->wake_in))
		return;
	blocked = gp_guard_lock(&a->guard);
	gp_held_drop(&a->wake_out);
	gp_held_drop(&a->wake_in);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
		a->wake_out = gp_held_take(ends[0]);
		a->wake_in = gp_held_take(ends[1]);
	}
	gp_guard_unlock(&a->guard, blocked);
}

static void turn(struct gp_agent *a)
{
	a->send_end_ns = gp_now_ns() + STUCK_NS;
	keep_wake(a);
	tell_events(a);
	if (is_connected(a))
		check_connection(a);
	if (is_connected(a) && a->drain.is_on && gp_agent_go_on_draining(a) < 0)
		lose(a);
	if (!is_connected(a) && a->owed_ns && gp_now_ns() >= a->owed_ns)
		give_back(a);
	if (!is_connected(a))
		look_for_daemon(a);
	wait_for_work(a);
	if (gp_now_ns() >= a->watch_ns) {
		a->is_over |= gp_agent_is_alone();
		a->watch_ns = gp_now_ns() + WATCH_NS;
	}
}

/*
 * The program may close us.  Not -z nodelete: a dynamic linker that LD_AUDIT made load us finds no auditor
 * and unloads us, or aborts if it may not.
 */
static void stay_loaded(void)
{
	Dl_info us;

	if (dladdr(&agent, &us))
		(void)dlopen(us.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/*
 * A program that spins in real time, on the CPU that it chose, must not keep us from resuming its queues: we
 * are no real-time thread, and run wherever the process may.
 */
static void run_anywhere(void)
{
	static const struct sched_param none;
	unsigned char all[MOST_CPUS / 8];

	memset(all, 0xff, sizeof(all)); /* the kernel leaves out what the cpuset does not have */
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	(void)sched_setaffinity(0, sizeof(all), (const cpu_set_t *)(const void *)all);
}

static void *run(void *arg)
{
	struct gp_agent *a = arg;
	gp_signals mask;

	stay_loaded();
	(void)prctl(PR_SET_NAME, "gpreempt-agent");
	run_anywhere();
	a->pause_ns = a->owed_pause_ns = FIRST_PAUSE;
	a->retry_ns = 0;
	a->watch_ns = gp_now_ns() + WATCH_NS;
	a->is_over = a->is_punctual = 0;
	while (!a->is_over)
		turn(a);
	if (is_connected(a))
		lose(a);
	keep_time(a);
	mask = a->mask; /* whoever starts the next thread writes there */
	__atomic_store_n(&started, 0, __ATOMIC_RELEASE);
	gp_agent_hand_over(mask);
	return NULL;
}

/* With every signal blocked, as it stays in the thread: the application's handlers run in its own. */
static int spawn(struct gp_agent *a)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attr))
		return -ENOMEM;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK);
	r = pthread_create(&thread, &attr, run, a);
	if (r == EINVAL) { /* the program's thread-local variables do not fit */
		(void)pthread_attr_setstacksize(&attr, 32 * STACK);
		r = pthread_create(&thread, &attr, run, a);
	}
	(void)pthread_attr_destroy(&attr);
	return -r;
}

static struct gp_agent *get_agent(const struct gp_own_ops *ops, struct gp_own *own)
{
	struct gp_agent *a = __atomic_load_n(&agent, __ATOMIC_ACQUIRE), *other = NULL;

	if (a)
		return a;
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a == MAP_FAILED)
		return NULL;
	a->ops = ops;
	a->own = own;
	a->wake_in = a->wake_out = a->driver = a->link.socket = GP_HELD_NONE;
	if (__atomic_compare_exchange_n(&agent, &other, a, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return a;
	(void)munmap(a, sizeof(*a));
	return other;
}

/* With the guard held. Not write(): that is a point at which the application's thread can be cancelled. */
static void nudge(const struct gp_agent *a)
{
	if (gp_held_is_ours(&a->wake_in))
		(void)syscall(SYS_write, a->wake_in.fd, "", 1);
}

static void identify(struct gp_agent *a, const struct gp_claim *who)
{
	gp_guard_take(&a->guard);
	if (strcmp(a->who.tag, who->tag) != 0 || a->who.seen != who->seen || a->who.weight != who->weight ||
	    a->who.slo_ns != who->slo_ns) {
		a->who = *who;
		__atomic_store_n(&a->changes, a->changes + 1, __ATOMIC_RELAXED);
		nudge(a);
	}
	gp_guard_give(&a->guard);
}

static void created(const struct gp_own_ops *ops, struct gp_own *own, const struct gp_claim *who,
		    gp_signals mask)
{
	int pid = getpid(), there = __atomic_load_n(&started, __ATOMIC_ACQUIRE);
	struct gp_agent *a;

	/* A child, and not by fork(): the C library's locks may be held by threads that are not there, and
	 * what is ours may be its parent's memory. Its queues run unmanaged. */
	if (there && there != pid)
		return;
	a = get_agent(ops, own);
	if (!a || a->own != own)
		return; /* a second vendor's queues run unmanaged */
	identify(a, who);
	if (there ||
	    !__atomic_compare_exchange_n(&started, &there, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	a->mask = mask;
	if (spawn(a) < 0)
		__atomic_store_n(&started, 0, __ATOMIC_RELEASE); /* with the next queue again */
}

void gp_agent_created(const struct gp_own_ops *ops, struct gp_own *own, const struct gp_claim *who)
{
	gp_signals blocked = gp_guard_block();

	created(ops, own, who, blocked);
	gp_guard_unblock(blocked);
}

void gp_agent_rang(void)
{
	struct gp_agent *a = __atomic_load_n(&agent, __ATOMIC_ACQUIRE);
	gp_signals blocked;

	if (!a)
		return;
	__atomic_store_n(&a->has_door, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&a->is_resting, __ATOMIC_SEQ_CST) ||
	    !__atomic_exchange_n(&a->is_resting, 0, __ATOMIC_SEQ_CST))
		return;
	blocked = gp_guard_block();
	gp_agent_wake(NULL);
	gp_guard_unblock(blocked);
}

void gp_agent_wake(void *unused)
{
	struct gp_agent *a = __atomic_load_n(&agent, __ATOMIC_ACQUIRE);

	(void)unused;
	if (!a || __atomic_load_n(&started, __ATOMIC_ACQUIRE) != getpid())
		return;
	gp_guard_take(&a->guard); /* the signals are blocked */
	nudge(a);
	gp_guard_give(&a->guard);
}

void gp_agent_forget(void)
{
	struct gp_agent *a = agent;

	__atomic_store_n(&started, 0, __ATOMIC_RELEASE);
	if (!a)
		return;
	__atomic_store_n(&a->guard, 0, __ATOMIC_RELEASE);
	gp_held_drop(&a->wake_in);
	gp_held_drop(&a->wake_out);
	gp_held_drop(&a->driver);
	gp_link_close(&a->link);
	a->is_welcome = 0;
	a->drain.is_on = 0;
	a->sampler.n = 0;
	a->owed_ns = 0;
}
