// SPDX-License-Identifier: MIT
/* bed: timeout=120 memory=3G param=cus=8 */
/*
 * Calls on scheduling sessions that are wrong: each is refused with its own error, stops nothing, sends
 * nothing to the device, and leaves the session, and what all of them have done, as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define HOUR (3600 * DBG_SECOND)
#define KERNEL_ADDRESS 0xffff888000000000ull
#define PAGE 4096u
#define NO_SUCH_PID 4000000
#define ENTRIES_ACROSS (PAGE / sizeof(struct kfd_session_queue) + 8)

static struct dbg_client client;
static int session;

/* A call, good but for what a test changes. */
struct call {
	struct kfd_session_args args;
	struct kfd_session_queue queue;
};

struct wrong {
	const char *what;
	size_t at, size; /* in struct call */
	uint64_t value;
	int error;
};

#define ARG(field, value, error) \
	{ \
#field " " #value, offsetof(struct call, args.field), \
			sizeof(((struct call *)NULL)->args.field), value, error \
	}
#define ENTRY(field, value) \
	{ \
		"entry " #field " " #value, offsetof(struct call, queue.field), \
			sizeof(((struct call *)NULL)->queue.field), value, -EINVAL \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct call good_call_for_a_gpu(uint32_t op)
{
	const uint32_t gpu = client.gpu->gpu_id;
	struct call call = { .args = { .op = op } };

	if (op == KFD_SESSION_SET_RESERVATION)
		call.args.reservation = (struct kfd_session_reservation){ .gpu_id = gpu,
									  .online_percent = 40,
									  .offline_percent = 40 };
	else
		call.args.background = (struct kfd_session_background){ .gpu_id = gpu, .enable = 1 };
	return call;
}

static struct call good_call(uint32_t op)
{
	if (op > KFD_SESSION_SET_CLASS)
		return good_call_for_a_gpu(op);
	if (op == KFD_SESSION_SET_CLASS)
		return (struct call){ .args = { .op = op, .class.class = KFD_SESSION_CLASS_ONLINE } };
	return (struct call){
		.args = { .op = op, .set = { .n = 1, .queue_size = sizeof(struct kfd_session_queue) } },
		.queue = session_queue(0, client.queues[0].id, op == KFD_SESSION_SET ? KFD_SESSION_STOP : 0)
	};
}

/* Nobody waits for a run list: the device counts it when it comes to it. */
static void run_again(void)
{
	session_one(session, 0, client.queues[0].id, KFD_SESSION_RUN);
	kfd_wait_stat(0, "active", client.nqueues, KFD_SOON);
}

/* What the driver says of sessions, processes and queues. */
static char sched[4096];

static void read_sched(char *ret)
{
	FILE *f = fopen("/sys/kernel/debug/kfd/sched", "r");
	size_t n = f ? fread(ret, 1, sizeof(sched) - 1, f) : 0;

	ret[n] = '\0';
	if (f)
		fclose(f);
}

/* Whether the queue runs as before, nothing else is otherwise, and the device was not asked anything. */
static int nothing_happened(void)
{
	struct session_packets p = session_packets();
	static char now[sizeof(sched)];

	read_sched(now);
	return sched[0] && !strcmp(now, sched) && p.unmap == 0 && p.query == 0 && p.runlist == 0 &&
	       session_state(session, 0, client.queues[0].id) == KFD_SESSION_ACTIVE;
}

static int fails_with(int r, int error, const char *what)
{
	int well = r == error && nothing_happened();

	if (!well)
		note("%s: %d, not %d; state %#x", what, r, error,
		     session_state(session, 0, client.queues[0].id));
	run_again();
	session_packets();
	read_sched(sched);
	return well;
}

static int is_refused(uint32_t op, const struct wrong *w)
{
	struct call call = good_call(op);

	memcpy((char *)&call + w->at, &w->value, w->size);
	if (op <= KFD_SESSION_QUERY && w->at != offsetof(struct call, args.set.queues))
		call.args.set.queues = (uintptr_t)&call.queue;
	return fails_with(session_call(session, &call.args), w->error, w->what);
}

static uint32_t refused(uint32_t op, const struct wrong *cases, uint32_t n)
{
	uint32_t well = 0;

	session_packets();
	for (uint32_t i = 0; i < n; i++)
		well += (uint32_t)is_refused(op, &cases[i]);
	return well;
}

static const struct wrong both[] = {
	ARG(op, 0, -EINVAL),
	ARG(op, KFD_SESSION_CREATE, -EINVAL),
	ARG(op, 99, -EINVAL),
	ARG(op, UINT32_MAX, -EINVAL),
	ARG(flags, 1, -EINVAL),
	ARG(flags, 1u << 31, -EINVAL),
	ARG(set.n, 0, -EINVAL),
	ARG(set.n, KFD_SESSION_MAX_QUEUES + 1, -EINVAL),
	ARG(set.n, UINT32_MAX, -EINVAL),
	ARG(set.queue_size, 0, -EINVAL),
	ARG(set.queue_size, 39, -EINVAL),
	ARG(set.queue_size, 48, -EINVAL),
	ARG(set.queue_size, UINT32_MAX, -EINVAL),
	ARG(set.cycles, 1, -EINVAL),
	ARG(set.latency_ns, 1ull << 63, -EINVAL),
	ARG(set.seqno, 1, -EINVAL),
	ARG(pad[5], 1, -EINVAL),
	ARG(pad[6], 1ull << 63, -EINVAL),
	ARG(set.queues, 0, -EFAULT),
	ARG(set.queues, 1, -EFAULT),
	ARG(set.queues, KERNEL_ADDRESS, -EFAULT),
	ARG(set.queues, UINT64_MAX, -EFAULT),
	ENTRY(flags, 2),
	ENTRY(flags, UINT32_MAX),
	ENTRY(flags, KFD_SESSION_COMPUTE_ONLY),
	ENTRY(want, 2),
	ENTRY(want, UINT32_MAX),
	ENTRY(type, 99),
	ENTRY(type, UINT32_MAX),
	ENTRY(status, 1),
	ENTRY(state, 1),
};

static const struct wrong when_looking[] = {
	ARG(set.grace_us, 1, -EINVAL),
	ENTRY(want, KFD_SESSION_STOP),
};

static void wrong_values(void)
{
	ok(refused(KFD_SESSION_SET, both, COUNT(both)) == COUNT(both), "SET refuses %u wrong values",
	   (uint32_t)COUNT(both));
	ok(refused(KFD_SESSION_QUERY, both, COUNT(both)) == COUNT(both), "QUERY does, too");
	ok(refused(KFD_SESSION_QUERY, when_looking, COUNT(when_looking)) == COUNT(when_looking),
	   "and what only SET may ask for");
}

static const struct wrong classes[] = {
	ARG(flags, 1, -EINVAL),
	ARG(class.class, KFD_SESSION_CLASS_OFFLINE + 1, -EINVAL),
	ARG(class.class, UINT32_MAX, -EINVAL),
	ARG(class.pid, KFD_SESSION_ALL_PROCESSES, -EINVAL),
	ARG(class.pid, 1, -ESRCH), /* without queues */
	ARG(class.pid, NO_SUCH_PID, -ESRCH),
	ARG(class.pid, 1u << 31, -ESRCH),
	ARG(class.start_time, 1, -ESRCH), /* another one's */
	ARG(class.start_time, UINT64_MAX, -ESRCH),
	ARG(pad[2], 1, -EINVAL),
	ARG(pad[6], 1ull << 63, -EINVAL),
};

/* Beside 40 percent of the other kind. */
static const struct wrong reservations[] = {
	ARG(flags, 1u << 31, -EINVAL),
	ARG(reservation.gpu_id, 0, -ENODEV),
	ARG(reservation.gpu_id, 1, -ENODEV),
	ARG(reservation.gpu_id, UINT32_MAX, -ENODEV),
	ARG(reservation.online_percent, 61, -EINVAL),
	ARG(reservation.online_percent, 101, -EINVAL),
	ARG(reservation.online_percent, UINT32_MAX - 39, -EINVAL), /* 0 in all */
	ARG(reservation.offline_percent, 61, -EINVAL),
	ARG(reservation.offline_percent, 101, -EINVAL),
	ARG(reservation.offline_percent, UINT32_MAX - 39, -EINVAL),
	ARG(reservation.period_ms, 9, -EINVAL),
	ARG(reservation.period_ms, 10001, -EINVAL),
	ARG(reservation.period_ms, UINT32_MAX, -EINVAL),
	ARG(reservation.max_queues, 1, -EINVAL),
	ARG(reservation.max_processes, 1, -EINVAL),
	ARG(pad[3], 1, -EINVAL),
	ARG(pad[6], 1, -EINVAL),
};

static const struct wrong backgrounds[] = {
	ARG(flags, 1, -EINVAL),
	ARG(background.gpu_id, 0, -ENODEV),
	ARG(background.gpu_id, 1, -ENODEV),
	ARG(background.gpu_id, UINT32_MAX, -ENODEV),
	ARG(background.enable, 2, -EINVAL),
	ARG(background.enable, UINT32_MAX, -EINVAL),
	ARG(background.period_us, 49, -EINVAL),
	ARG(background.period_us, 1000001, -EINVAL),
	ARG(background.period_us, UINT32_MAX, -EINVAL),
	ARG(background.linger_us, 1000001, -EINVAL),
	ARG(background.linger_us, UINT32_MAX, -EINVAL),
	ARG(background.cpu_percent, 101, -EINVAL),
	ARG(background.cpu_percent, UINT32_MAX, -EINVAL),
	ARG(background.pad, 1, -EINVAL),
	ARG(pad[3], 1, -EINVAL),
	ARG(pad[6], 1, -EINVAL),
};

/* So that it is the one wrong value that was refused. */
static int is_done_without(uint32_t op, struct call end)
{
	struct call call = good_call(op);
	int r = session_call(session, &call.args);
	int ended = session_call(session, &end.args);

	if (r || ended)
		note("op %u: %d, and its end %d", op, r, ended);
	run_again();
	return r == 0 && ended == 0;
}

static void wrong_values_of_others(void)
{
	struct call no_class = good_call(KFD_SESSION_SET_CLASS),
		    no_slots = good_call(KFD_SESSION_SET_RESERVATION),
		    no_looks = good_call(KFD_SESSION_SET_BACKGROUND);

	no_class.args.class.class = KFD_SESSION_CLASS_NONE;
	no_slots.args.reservation.online_percent = no_slots.args.reservation.offline_percent = 0;
	no_looks.args.background.enable = 0;
	ok(refused(KFD_SESSION_SET_CLASS, classes, COUNT(classes)) == COUNT(classes),
	   "SET_CLASS refuses %u wrong values", (uint32_t)COUNT(classes));
	ok(refused(KFD_SESSION_SET_RESERVATION, reservations, COUNT(reservations)) == COUNT(reservations),
	   "SET_RESERVATION %u", (uint32_t)COUNT(reservations));
	ok(refused(KFD_SESSION_SET_BACKGROUND, backgrounds, COUNT(backgrounds)) == COUNT(backgrounds),
	   "SET_BACKGROUND %u", (uint32_t)COUNT(backgrounds));
	ok(is_done_without(KFD_SESSION_SET_CLASS, no_class) &&
		   is_done_without(KFD_SESSION_SET_RESERVATION, no_slots) &&
		   is_done_without(KFD_SESSION_SET_BACKGROUND, no_looks),
	   "the same calls without a wrong value are done");
	session_packets();
	ok(nothing_happened(), "and what ends them leaves nothing");
}

/* One bad entry among good ones. */
static void one_bad_entry(void)
{
	struct kfd_session_queue queues[3] = { good_call(KFD_SESSION_SET).queue,
					       good_call(KFD_SESSION_SET).queue,
					       good_call(KFD_SESSION_SET).queue };

	session_packets();
	queues[2].type = 7;
	ok(fails_with(session_set(session, queues, 3, NULL), -EINVAL, "third of three"),
	   "one wrong entry refuses the whole call");
	ok(queues[0].status == 0 && queues[0].state == 0, "and no entry gets an answer");
}

static void seqno_counts_what_was_done(void)
{
	struct call call = good_call(KFD_SESSION_QUERY);
	struct kfd_session_set first, second;

	session_set(session, &call.queue, 1, &first);
	call.queue = good_call(KFD_SESSION_SET).queue;
	call.queue.type = 99;
	session_set(session, &call.queue, 1, &second);
	ok(second.seqno == 0, "a call that is refused has no number");
	call.queue = session_queue(0, client.queues[0].id, KFD_SESSION_RUN);
	session_set(session, &call.queue, 1, &second);
	ok(second.seqno == first.seqno + 1, "nor does it take one");
}

static int create(struct kfd_session_args *args)
{
	int r = session_call(client.kfd.fd, args);

	if (r == 0)
		close(args->create.fd);
	return r;
}

static const struct wrong creates[] = {
	ARG(op, 0, -EINVAL),
	ARG(op, KFD_SESSION_SET, -EINVAL),
	ARG(op, KFD_SESSION_QUERY, -EINVAL),
	ARG(op, UINT32_MAX, -EINVAL),
	ARG(flags, 1, -EINVAL),
	ARG(create.fd, 1, -EINVAL),
	ARG(create.rights, 1, -EINVAL),
	ARG(create.lease_ns, HOUR + 1, -EINVAL),
	ARG(create.lease_ns, UINT64_MAX, -EINVAL),
	ARG(pad[2], 1, -EINVAL),
	ARG(pad[6], 1, -EINVAL),
};

static void wrong_creates(void)
{
	struct kfd_session_args args;
	uint32_t well = 0;
	int r;

	for (uint32_t i = 0; i < COUNT(creates); i++) {
		args = (struct kfd_session_args){ .op = KFD_SESSION_CREATE };
		memcpy((char *)&args + creates[i].at, &creates[i].value, creates[i].size);
		r = create(&args);
		if (r != creates[i].error)
			note("%s: %d", creates[i].what, r);
		well += r == creates[i].error;
	}
	ok(well == COUNT(creates), "CREATE refuses %u wrong values", (uint32_t)COUNT(creates));
	args = (struct kfd_session_args){ .op = KFD_SESSION_CREATE, .create.lease_ns = HOUR };
	ok(create(&args) == 0, "a lease of an hour is not too long");
	args = (struct kfd_session_args){ .op = KFD_SESSION_CREATE, .create.lease_ns = 1 };
	ok(create(&args) == 0, "nor one of a nanosecond too short");
}

static int call_of_size(uint32_t size, unsigned char type, unsigned char number, void *args)
{
	int r = ioctl(session, _IOC(_IOC_READ | _IOC_WRITE, type, number, size), args);

	return r < 0 ? -errno : r;
}

/* SET of the struct and what is behind it, as a call of that size; the byte at the end is that value. */
static int set_of_size(uint32_t size, char last)
{
	static char memory[1 << _IOC_SIZEBITS];
	struct call call = good_call(KFD_SESSION_SET);

	call.args.set.queues = (uintptr_t)&call.queue;
	memset(memory, 0, sizeof(memory));
	memcpy(memory, &call.args, sizeof(call.args));
	if (last)
		memory[size - 1] = last;
	return call_of_size(size, 'K', 0x29, memory);
}

/* The same of CREATE. */
static int create_of_size(uint32_t size, char last)
{
	static char memory[1 << _IOC_SIZEBITS];
	struct kfd_session_args *args = (void *)memory;
	int r;

	memset(memory, 0, sizeof(memory));
	args->op = KFD_SESSION_CREATE;
	memory[size - 1] = last;
	r = ioctl(client.kfd.fd, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x29, size), memory);
	if (r == 0)
		close(args->create.fd);
	return r < 0 ? -errno : r;
}

static void sizes_of_create(void)
{
	const uint32_t whole = sizeof(struct kfd_session_args), most = (1 << _IOC_SIZEBITS) - 1,
		       room = 8 + sizeof(struct kfd_session_create);

	session_packets();
	ok(fails_with(create_of_size(whole + 1, 1), -E2BIG, "whole + 1") &&
		   fails_with(create_of_size(most, 1), -E2BIG, "most"),
	   "what is behind the struct of CREATE must be 0");
	ok(fails_with(create_of_size(room - 1, 0), -EINVAL, "room - 1") &&
		   fails_with(create_of_size(8, 0), -EINVAL, "8") && create_of_size(room, 0) == 0,
	   "and it must have room for the descriptor");
	ok(create_of_size(whole + 1, 0) == 0 && create_of_size(most, 0) == 0, "and is nothing if it is");
}

static void sizes(void)
{
	const uint32_t whole = sizeof(struct kfd_session_args), most = (1 << _IOC_SIZEBITS) - 1,
		       used = 8 + sizeof(struct kfd_session_set);

	session_packets();
	ok(fails_with(set_of_size(0, 0), -EINVAL, "size 0") && fails_with(set_of_size(4, 0), -EINVAL, "4") &&
		   fails_with(set_of_size(16, 0), -EINVAL, "16"),
	   "a call that is too short asks for nothing");
	ok(fails_with(set_of_size(whole + 1, 1), -E2BIG, "whole + 1") &&
		   fails_with(set_of_size(most, 1), -E2BIG, "most"),
	   "what is behind the struct must be 0");
	ok(set_of_size(most, 0) == 0 && session_is_stopped(session, 0, client.queues[0].id),
	   "and is nothing if it is");
	run_again();
	ok(set_of_size(used, 0) == 0 && session_is_stopped(session, 0, client.queues[0].id),
	   "what a shorter call leaves out is 0");
	run_again();
}

static void other_calls(void)
{
	struct call call = good_call(KFD_SESSION_SET);
	const uint32_t size = sizeof(call.args);

	call.args.set.queues = (uintptr_t)&call.queue;
	session_packets();
	ok(fails_with(call_of_size(size, 'K', 0x28, &call), -ENOTTY, "number") &&
		   fails_with(call_of_size(size, 'k', 0x29, &call), -ENOTTY, "type") &&
		   fails_with(call_of_size(8, 'K', 0x01, &call), -ENOTTY, "version") &&
		   fails_with(call_of_size(0, 'T', 0x01, &call), -ENOTTY, "terminal"),
	   "a session knows no other ioctl");
	ok(fails_with(session_call(client.kfd.fd, &call.args), -EINVAL, "/dev/kfd"),
	   "/dev/kfd does not know SET");
	ok(fails_with(call_of_size(size, 'K', 0x29, NULL), -EFAULT, "NULL") &&
		   fails_with(call_of_size(size, 'K', 0x29, (void *)KERNEL_ADDRESS), -EFAULT, "kernel"),
	   "arguments must be in memory");
}

/* Two pages, the second of which may not be written to, or is not there. */
static char *pages(int second)
{
	char *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(at, 0, 2 * PAGE);
	for (uint32_t i = 0; i < ENTRIES_ACROSS; i++)
		((struct kfd_session_queue *)at)[i] = session_queue(0, client.queues[0].id, KFD_SESSION_STOP);
	mprotect(at + PAGE, PAGE, second);
	return at;
}

static int set_in(char *at)
{
	return session_set(session, (struct kfd_session_queue *)at, ENTRIES_ACROSS, NULL);
}

static int set_at_the_end_of(char *at)
{
	struct call call = good_call(KFD_SESSION_SET);
	struct kfd_session_args *args =
		(struct kfd_session_args *)(at + PAGE - offsetof(struct kfd_session_args, set.cycles));

	call.args.set.queues = (uintptr_t)&call.queue;
	mprotect(at + PAGE, PAGE, PROT_READ | PROT_WRITE);
	memcpy(args, &call.args, sizeof(*args));
	mprotect(at + PAGE, PAGE, PROT_READ);
	return session_call(session, args);
}

static void memory_that_is_half_there(void)
{
	char *gone = pages(PROT_NONE), *constant = pages(PROT_READ);

	session_packets();
	ok(fails_with(set_in(gone), -EFAULT, "half an array"), "half of the array is not there: EFAULT");
	ok(fails_with(set_in(constant), -EFAULT, "constant array"),
	   "the answer cannot be written: EFAULT, and nothing was done");
	ok(fails_with(set_at_the_end_of(constant), -EFAULT, "constant arguments"),
	   "nor into arguments that are constant");
	munmap(gone, 2 * PAGE);
	munmap(constant, 2 * PAGE);
}

static void as_a_file(void)
{
	struct pollfd poll_fd = { .fd = session, .events = POLLIN };
	char byte = 0, path[64];

	ok(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, session, 0) == MAP_FAILED && errno == ENODEV,
	   "a session cannot be mapped");
	ok(read(session, &byte, 1) < 0 && errno == EINVAL && write(session, &byte, 1) < 0 && errno == EINVAL,
	   "nor read, nor written");
	ok(poll(&poll_fd, 1, 0) >= 0, "poll() returns");
	ok(fcntl(session, F_GETFD) & FD_CLOEXEC, "it is closed on exec");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", session);
	ok(open(path, O_RDWR) < 0, "it cannot be opened once more");
}

static void without_a_descriptor_left(void)
{
	struct kfd_session_args args = { .op = KFD_SESSION_CREATE, .create.lease_ns = 50 * DBG_MS };
	struct rlimit limit, none;
	int next = dup(session), r;

	close(next);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = (rlim_t)next;
	setrlimit(RLIMIT_NOFILE, &none);
	r = create(&args);
	setrlimit(RLIMIT_NOFILE, &limit);
	ok(r == -EMFILE, "without a descriptor left CREATE says EMFILE (%d)", r);
	kfd_sleep(100 * DBG_MS);
	r = dup(session);
	ok(r == next, "and takes none (%d, %d)", r, next);
	close(r);
}

int main(void)
{
	int r;

	if (session_missing())
		return 0;
	r = dbg_client_open(&client);
	if (r == 0)
		r = dbg_client_add(&client, 1);
	session = session_open(&client.kfd, 0);
	if (!ok(r == 0 && session >= 0, "there are a queue and a session"))
		return tap_done();
	run_again(); /* the device has come to the run list with the queue */
	session_packets();
	read_sched(sched);
	wrong_values();
	wrong_values_of_others();
	one_bad_entry();
	seqno_counts_what_was_done();
	wrong_creates();
	sizes();
	sizes_of_create();
	other_calls();
	memory_that_is_half_there();
	as_a_file();
	without_a_descriptor_left();
	ok(session_one(session, 0, client.queues[0].id, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_one(session, 0, client.queues[0].id, KFD_SESSION_RUN) == KFD_SESSION_DONE,
	   "after all of this the session works");
	return tap_done();
}
