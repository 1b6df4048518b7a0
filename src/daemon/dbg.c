// SPDX-License-Identifier: MIT
#include "daemon/dbg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/kfd/kind.h"
#include "backend/kfd/trap.h"
#include "daemon/loop.h"
#include "daemon/process.h"
#include "wire/wire.h"

#define QUEUES KFD_DBG_MOST_IDS
#define LEASE_NS (3 * GP_S) /* until WELCOME says */
#define STOP_MS 2000        /* for the target to stop, so that it can be let go */

struct queue {
	uint64_t number; /* ours for it; 0: this place is free */
	struct kfd_dbg_queue is;
	bool stopped, seen;
};

struct dbg {
	pid_t pid;
	uint32_t uid;
	struct gp_process process;
	int socket, signals;
	struct gp_trap trap;
	bool traced, enabled, ends;
	uint64_t lease_ns, heard_ns;
	uint64_t last_number;
	struct queue queues[QUEUES];
	struct gp_msg in, out; /* large */
};

static void say(struct dbg *d)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	int n = gp_wire_encode(&d->out, 0, packet, sizeof(packet));

	/* Whoever does not read any more is as good as dead. */
	if (n < 0 || send(d->socket, packet, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		d->ends = true;
}

static struct gp_msg *begin(struct dbg *d, uint32_t type)
{
	memset(&d->out, 0, offsetof(struct gp_msg, item));
	d->out.type = type;
	return &d->out;
}

static int fail(struct dbg *d, int status, const char *text)
{
	struct gp_msg *m = begin(d, GP_MSG_ERROR);

	m->error.status = status;
	snprintf(m->error.text, sizeof(m->error.text), "%s", text);
	say(d);
	return status;
}

/* Attaching */

static unsigned tracer_of(pid_t pid)
{
	char path[64], line[256];
	unsigned tracer = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %u", &tracer) == 1)
			break;
	if (f)
		fclose(f);
	return tracer;
}

/* From now on nobody else can get its number. */
static int check_process(struct dbg *d)
{
	struct gp_identity now;

	if (gp_process_identify(&d->process, &now) < 0)
		return fail(d, -ESRCH, "it has ended, and its number is another process's");
	if (now.uid != d->uid)
		return fail(d, -EPERM, "it has become another user's meanwhile");
	return 0;
}

static int trace(struct dbg *d)
{
	char text[128];
	unsigned tracer;
	int r;

	/* Its exit stops: the driver hangs if a process ends that is still debugged. */
	if (ptrace(PTRACE_SEIZE, d->pid, NULL, (void *)PTRACE_O_TRACEEXIT) == 0) {
		d->traced = true;
		return check_process(d);
	}
	r = -errno;
	tracer = tracer_of(d->pid);
	if (tracer)
		snprintf(text, sizeof(text), "process %d is debugged by process %u", d->pid, tracer);
	else
		snprintf(text, sizeof(text), "cannot trace process %d: %s", d->pid, strerror(-r));
	return fail(d, r, text);
}

static int enable(struct dbg *d)
{
	char text[128];
	uint32_t state;
	int r = gp_trap_enable(&d->trap, &state);

	if (r == -EALREADY)
		return fail(d, r, "another debugger has its GPU queues: rocgdb, or one of its own");
	if (r < 0) {
		snprintf(text, sizeof(text), "the driver does not let it be debugged: %s", strerror(-r));
		return fail(d, r, text);
	}
	d->enabled = true;
	if (state == KFD_RUNTIME_STATE_ENABLED)
		return 0;
	if (state == KFD_RUNTIME_STATE_DISABLED)
		return fail(d, -EOPNOTSUPP,
			    "it has not enabled its runtime, as ROCr does, before its first queue");
	return fail(d, -EBUSY, "its runtime cannot be debugged now");
}

static int attach(struct dbg *d)
{
	char text[128];
	int r = gp_trap_open(&d->trap, (uint32_t)d->pid);

	if (r < 0) {
		snprintf(text, sizeof(text), "cannot open /dev/kfd: %s", strerror(-r));
		return fail(d, r == -ENOENT ? -ENODEV : r, text); /* the queue is there, the driver is not */
	}
	r = trace(d);
	return r < 0 ? r : enable(d);
}

/* Queues */

static void tell_queue(struct dbg *d, const struct queue *q)
{
	struct gp_msg *m = begin(d, GP_MSG_QUEUE);

	m->queue = (struct gp_msg_queue){ .queue = q->number,
					  .ring = q->is.ring,
					  .ring_size = q->is.ring_size,
					  .queue_id = q->is.queue_id,
					  .gpu_id = q->is.gpu_id,
					  .kind = gp_kfd_kind(q->is.type),
					  .percent = 100,
					  .stopped = q->stopped };
	say(d);
}

static void tell_gone(struct dbg *d, struct queue *q)
{
	begin(d, GP_MSG_GONE)->queue.queue = q->number;
	say(d);
	*q = (struct queue){ 0 };
}

static struct queue *find(struct dbg *d, uint64_t number)
{
	for (size_t i = 0; number && i < QUEUES; i++)
		if (d->queues[i].number == number)
			return &d->queues[i];
	return NULL;
}

static void see(struct dbg *d, const struct kfd_dbg_queue *is)
{
	struct queue *place = NULL;

	for (size_t i = 0; i < QUEUES; i++) {
		struct queue *q = &d->queues[i];

		if (q->number && q->is.queue_id == is->queue_id && q->is.ring == is->ring) {
			q->seen = true;
			return;
		}
		if (!q->number && !place)
			place = q;
	}
	if (!place)
		return; /* the driver does not allow that many */
	*place = (struct queue){ .number = ++d->last_number, .is = *is, .seen = true };
	tell_queue(d, place);
}

static void look(struct dbg *d)
{
	static struct kfd_dbg_queue found[QUEUES];
	int n = gp_trap_snapshot(&d->trap, found, QUEUES);

	if (n < 0)
		return;
	for (size_t i = 0; i < QUEUES; i++)
		d->queues[i].seen = false;
	for (int i = 0; i < n; i++)
		see(d, &found[i]);
	for (size_t i = 0; i < QUEUES; i++)
		if (d->queues[i].number && !d->queues[i].seen)
			tell_gone(d, &d->queues[i]);
}

static void resume_all(struct dbg *d)
{
	uint32_t ids[QUEUES], n = 0;

	for (size_t i = 0; i < QUEUES; i++)
		if (d->queues[i].number && d->queues[i].stopped)
			ids[n++] = d->queues[i].is.queue_id;
	(void)gp_trap_resume(&d->trap, ids, n);
	for (size_t i = 0; i < QUEUES; i++) {
		struct queue *q = &d->queues[i];

		if (!q->number || !q->stopped)
			continue;
		q->stopped = false;
		tell_queue(d, q);
	}
}

/* What is wanted: one call for all that is to stop, one for all that is to run */

struct batch {
	uint32_t n;
	uint32_t ids[QUEUES];
	struct gp_wire_item *items[QUEUES];
};

static void collect(struct dbg *d, struct gp_msg *m, uint32_t want, struct batch *b)
{
	b->n = 0;
	for (uint32_t i = 0; i < m->items.n; i++) {
		struct gp_wire_item *item = &m->item[i];
		struct queue *q = find(d, item->queue);

		if (item->want != want || b->n == QUEUES)
			continue;
		item->status = q ? -EINPROGRESS : -ENOENT;
		if (!q)
			continue;
		b->items[b->n] = item;
		b->ids[b->n++] = q->is.queue_id;
	}
}

static void set_status(struct dbg *d, struct gp_wire_item *item, int status, bool stopped)
{
	struct queue *q = find(d, item->queue);

	item->status = status;
	if (q && status == 0)
		q->stopped = stopped;
}

static int status_of(uint32_t id, int r, int invalid)
{
	if (r < 0)
		return r;
	if (id & KFD_DBG_ID_ERROR)
		return -EIO;
	return id & KFD_DBG_ID_INVALID ? invalid : 0;
}

static void suspend_batch(struct dbg *d, struct batch *b, int invalid)
{
	int r = b->n ? gp_trap_suspend(&d->trap, b->ids, b->n) : 0;

	for (uint32_t i = 0; i < b->n; i++) {
		int status = status_of(b->ids[i], r, invalid);
		uint32_t id = b->ids[i] & ~(KFD_DBG_ID_ERROR | KFD_DBG_ID_INVALID);

		/* After an error of the hardware the driver keeps it as suspended. */
		if (status == -EIO)
			(void)gp_trap_resume(&d->trap, &id, 1);
		set_status(d, b->items[i], status, true);
	}
}

/* Those that were new, and could not be suspended for it, and are still there. */
static void suspend_again(struct dbg *d, struct gp_msg *m, struct batch *b)
{
	look(d);
	b->n = 0;
	for (uint32_t i = 0; i < m->items.n; i++) {
		struct gp_wire_item *item = &m->item[i];
		struct queue *q = find(d, item->queue);

		if (item->want != GP_STOP || item->status != -EAGAIN)
			continue;
		item->status = -ENOENT;
		if (!q)
			continue;
		b->items[b->n] = item;
		b->ids[b->n++] = q->is.queue_id;
	}
	suspend_batch(d, b, -EBUSY);
}

static void stop_wanted(struct dbg *d, struct gp_msg *m, struct batch *b)
{
	bool again = false;

	collect(d, m, GP_STOP, b);
	if (m->items.type != GP_PREEMPT_SAVE) {
		for (uint32_t i = 0; i < b->n; i++)
			b->items[i]->status = -EOPNOTSUPP;
		return;
	}
	suspend_batch(d, b, -EAGAIN);
	for (uint32_t i = 0; i < m->items.n; i++)
		again |= m->item[i].want == GP_STOP && m->item[i].status == -EAGAIN;
	if (again)
		suspend_again(d, m, b);
}

static void run_wanted(struct dbg *d, struct gp_msg *m, struct batch *b)
{
	int r;

	collect(d, m, GP_RUN, b);
	r = gp_trap_resume(&d->trap, b->ids, b->n);
	for (uint32_t i = 0; i < b->n; i++)
		set_status(d, b->items[i], status_of(b->ids[i], r, -ENOENT), false);
}

static void obey(struct dbg *d, struct gp_msg *m)
{
	static struct batch batch;
	uint64_t start = gp_clock_ns(), took;

	stop_wanted(d, m, &batch);
	run_wanted(d, m, &batch);
	took = gp_clock_ns() - start;
	for (uint32_t i = 0; i < m->items.n; i++) {
		if (m->item[i].want == GP_BACKGROUND)
			m->item[i].status = -ENOTSUP;
		m->item[i].latency_ns = took;
	}
	begin(d, GP_MSG_DONE);
	d->out.serial = m->serial;
	d->out.items = m->items;
	memcpy(d->out.item, m->item, m->items.n * sizeof(m->item[0]));
	say(d);
}

/* What comes in */

static void from_daemon(struct dbg *d)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	ssize_t n = recv(d->socket, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		d->ends = true;
		return;
	}
	if (gp_wire_decode(packet, (size_t)n, &d->in) < 0)
		return;
	d->heard_ns = gp_clock_ns();
	if (d->in.type == GP_MSG_WELCOME)
		d->lease_ns = d->in.welcome.lease_ns;
	if (d->in.type == GP_MSG_WANTS)
		obey(d, &d->in);
}

/* The runtime waits for our word, and after it there is nothing more to stop. */
static void from_driver(struct dbg *d)
{
	uint64_t events = gp_trap_events(&d->trap);

	if (events & KFD_EC_PROCESS_RUNTIME) {
		(void)gp_trap_let_runtime_go(&d->trap);
		d->ends = true;
	}
	if (events && !d->ends)
		look(d);
}

/* Before DISABLE nobody may be left waiting for our word: the driver would not wake it. */
static void disable(struct dbg *d)
{
	if (!d->enabled)
		return;
	if (gp_trap_events(&d->trap) & KFD_EC_PROCESS_RUNTIME)
		(void)gp_trap_let_runtime_go(&d->trap);
	(void)gp_trap_disable(&d->trap);
	d->enabled = false;
}

static bool is_group_stop(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* A stop of the target's: it goes on as if nobody had looked. */
static void from_target(struct dbg *d, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (!WIFSTOPPED(status)) {
		d->traced = d->enabled = false;
		d->ends = true;
	} else if (event == PTRACE_EVENT_EXIT) {
		disable(d);
		(void)ptrace(PTRACE_DETACH, d->pid, NULL, NULL);
		d->traced = false;
		d->ends = true;
	} else if (event == PTRACE_EVENT_STOP) {
		(void)ptrace(is_group_stop(sig) ? PTRACE_LISTEN : PTRACE_CONT, d->pid, NULL, NULL);
	} else {
		(void)ptrace(PTRACE_CONT, d->pid, NULL, (void *)(long)sig);
	}
}

static void reap(struct dbg *d)
{
	struct signalfd_siginfo info;
	int status;

	while (read(d->signals, &info, sizeof(info)) > 0)
		;
	while (d->traced && waitpid(d->pid, &status, __WALL | WNOHANG) == d->pid)
		from_target(d, status);
}

/* Letting go */

/* Only a stopped process can be; the signal it stopped for is its own. */
static void detach(struct dbg *d)
{
	int status, sig;

	(void)ptrace(PTRACE_INTERRUPT, d->pid, NULL, NULL);
	for (int ms = 0; d->traced && ms < STOP_MS; ms++) {
		if (waitpid(d->pid, &status, __WALL | WNOHANG) != d->pid) {
			usleep(1000);
			continue;
		}
		sig = WIFSTOPPED(status) && status >> 16 == 0 ? WSTOPSIG(status) : 0;
		(void)ptrace(PTRACE_DETACH, d->pid, NULL, (void *)(long)sig);
		d->traced = false;
	}
	/* One that does not stop in time is let go by our exit. */
}

static void let_go(struct dbg *d)
{
	if (d->enabled)
		resume_all(d);
	disable(d);
	if (d->traced)
		detach(d);
}

static int wait_ms(const struct dbg *d)
{
	uint64_t now = gp_clock_ns(), end = d->heard_ns + d->lease_ns;

	return now >= end ? 0 : (int)((end - now) / GP_MS + 1);
}

static void loop(struct dbg *d)
{
	struct pollfd fds[] = { { .fd = d->socket, .events = POLLIN },
				{ .fd = d->trap.wake[0], .events = POLLIN },
				{ .fd = d->signals, .events = POLLIN } };

	while (!d->ends) {
		int n = poll(fds, 3, wait_ms(d));

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && fds[2].revents)
			reap(d);
		if (n > 0 && fds[1].revents && !d->ends)
			from_driver(d);
		if (n > 0 && fds[0].revents && !d->ends)
			from_daemon(d);
		if (!wait_ms(d)) {
			resume_all(d); /* gpreemptd hangs */
			d->heard_ns = gp_clock_ns();
		}
	}
}

static int prepare_signals(struct dbg *d)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	sigset_t set;

	/* The socket says when to end, whoever else is told to. */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signals < 0 ? -errno : 0;
}

static void hello(struct dbg *d)
{
	struct gp_msg *m = begin(d, GP_MSG_HELLO);

	m->hello = (struct gp_msg_hello){ .role = GP_ROLE_PROXY,
					  .ways = GP_KFD_WAY_DBG,
					  .pid = (uint32_t)d->pid,
					  .name = "gpreemptd --dbg" };
	say(d);
}

int gp_dbg_main(uint32_t pid, uint32_t uid)
{
	static struct dbg d;

	d.pid = (pid_t)pid;
	d.uid = uid;
	d.process = gp_process_of(GP_DBG_PROCESS, pid);
	d.socket = GP_DBG_SOCKET;
	d.lease_ns = LEASE_NS;
	if (prepare_signals(&d) < 0)
		return 1;
	hello(&d);
	if (attach(&d) == 0) {
		look(&d);
		begin(&d, GP_MSG_END);
		say(&d);
		d.heard_ns = gp_clock_ns();
		loop(&d);
	}
	let_go(&d);
	return 0;
}
