// SPDX-License-Identifier: MIT
/*
 * Not a test: programs that do with their process what they like, on $GPREEMPT_KFD.  guest.py
 * starts them with and without the agent.
 *
 *   guest cancel      threads are cancelled asynchronously in their calls to the driver
 *   guest leave       main() ends by pthread_exit(), and an exit handler says what it has
 *   guest outlived    the same, and another thread goes on for half a second
 *   guest exit7       main() ends by the system call, with status 7
 *   guest zombie      main() ends; another thread goes on until standard input ends
 *   guest idle N      with a limit of N descriptors; the time that a second of sleep takes
 *   guest only NRS    under a filter that kills it for any call but its own and these
 *   guest deny NRS    under one that denies these, as Docker's does: EPERM, and ENOSYS for clone3
 *   guest storm       children in every way there is, from four threads
 *   guest spin        in real time on one CPU, for two seconds from the first line of standard input
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"

#define MOST_QUEUES 64 /* of the double */
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

#define MS 1000000ull
#define SECOND (1000 * MS)

static int driver;
static const char *word = ""; /* the second one */

static int create(void)
{
	static uint64_t pointers[2]; /* of queues that never have work */
	struct kfd_create_queue_args args = { .ring = 4096,
					      .rptr = (uintptr_t)&pointers[0],
					      .wptr = (uintptr_t)&pointers[1],
					      .ring_size = 4096,
					      .type = KFD_TYPE_AQL,
					      .percent = 100,
					      .priority = 7 };

	return ioctl(driver, KFD_IOC_CREATE_QUEUE, &args) < 0 ? -errno : (int)args.queue_id;
}

static int update(int queue, uint32_t percent)
{
	struct kfd_update_queue_args args = { .ring = 4096,
					      .queue_id = (uint32_t)queue,
					      .ring_size = 4096,
					      .percent = percent,
					      .priority = 7 };

	return ioctl(driver, KFD_IOC_UPDATE_QUEUE, &args) < 0 ? -errno : 0;
}

static int destroy(int queue)
{
	struct kfd_destroy_queue_args args = { .queue_id = (uint32_t)queue };

	return ioctl(driver, KFD_IOC_DESTROY_QUEUE, &args) < 0 ? -errno : 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };

	nanosleep(&t, NULL);
}

/* Until whoever started us says the next thing, or has gone. */
static void wait_for_line(void)
{
	char c = 0;

	while (c != '\n' && read(0, &c, 1) > 0)
		;
}

/* Cancelled threads */

static void *call_until_cancelled(void *arg)
{
	int queue = *(int *)arg, type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (uint32_t i = 0;; i++) {
		update(queue, i % 100);
		if (i % 3 == 2)
			destroy(queue), queue = create();
	}
	return NULL;
}

static int cancel(void)
{
	int first = create(), other = create();
	struct timespec t = { 0 };
	pthread_t thread;

	for (int i = 0; i < 500; i++) {
		if (pthread_create(&thread, NULL, call_until_cancelled, &other))
			return 1;
		t.tv_nsec = 20000 + i * 7919 % 50000;
		nanosleep(&t, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		for (int id = 0; id < MOST_QUEUES; id++)
			if (id != first)
				destroy(id); /* whichever it left */
		other = create();
		if (other < 0 || update(first, 50) < 0)
			return 2;
	}
	puts("fine");
	return 0;
}

/* Ends */

/* As much stack as a thread may expect to have, and no signal blocked. */
static void say_what_is_here(void)
{
	volatile char stack[4 << 20];
	sigset_t blocked;

	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	printf("handler: SIGTERM is %s\n", sigismember(&blocked, SIGTERM) ? "blocked" : "let in");
}

static int leave(void)
{
	atexit(say_what_is_here);
	printf("queue %d, not flushed here\n", create());
	pthread_exit(NULL);
}

static void *go_on(void *unused)
{
	(void)unused;
	sleep_ns(SECOND / 2);
	printf("update: %d\n", update(0, 50));
	return NULL;
}

static int outlived(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, go_on, NULL);
	return leave();
}

static int exit7(void)
{
	create();
	fflush(stdout);
	syscall(SYS_exit, 7);
	return 1;
}

static void *update_at_the_end(void *unused)
{
	(void)unused;
	wait_for_line();
	printf("update: %d\n", update(0, 70));
	fflush(stdout);
	wait_for_line();
	return NULL;
}

static int zombie(void)
{
	pthread_t thread;

	create();
	pthread_create(&thread, NULL, update_at_the_end, NULL);
	pthread_exit(NULL);
}

/* Limits and scheduling */

static int idle(void)
{
	struct rlimit limit = { (rlim_t)atoi(word), (rlim_t)atoi(word) };
	uint64_t begin;

	create();
	sleep_ns(SECOND / 2);
	if (*word && setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 1;
	begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	sleep_ns(SECOND);
	printf("%llu\n", (unsigned long long)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin));
	return 0;
}

static int spin(void)
{
	const struct sched_param real_time = { .sched_priority = 10 };
	cpu_set_t one;
	uint64_t end;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 || sched_setscheduler(0, SCHED_FIFO, &real_time) < 0)
		return 77;
	create();
	wait_for_line();
	end = clock_ns(CLOCK_MONOTONIC) + 2 * SECOND;
	while (clock_ns(CLOCK_MONOTONIC) < end)
		;
	return 0;
}

/* Children */

#define THREADS 4
#define ROUNDS 50

static int queue_and_go(void)
{
	int queue = create();

	return queue >= 0 && update(queue, 50) == 0 && destroy(queue) == 0 ? 7 : 1;
}

static pid_t begin_child(int way)
{
	char *const command[] = { "sh", "-c", "exit 7", NULL };
	pid_t child = -1;

	if (way == 0) {
		child = fork();
	} else if (way == 1) {
		child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	} else if (way == 2) {
		child = vfork();
		if (child == 0)
			_exit(7);
	} else if (posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ)) {
		return -1;
	}
	if (child == 0)
		_exit(queue_and_go());
	return child;
}

static void *have_children(void *arg)
{
	int *ended = arg, status;
	pid_t child;

	for (int i = 0; i < ROUNDS * 4; i++) {
		child = begin_child(i % 4);
		if (child > 0 && waitpid(child, &status, __WALL) == child && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 7)
			++*ended;
		update(0, (uint32_t)i % 100);
	}
	return NULL;
}

static int storm(void)
{
	int ended[THREADS] = { 0 }, all = 0;
	pthread_t threads[THREADS];

	create();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, have_children, &ended[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		all += ended[i];
	}
	printf("%d children, and %s is left\n", all,
	       waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD ? "none" : "one");
	return 0;
}

/* Filters */

/* What this program and the double call themselves after the filter is there; the C library's fork() besides.
 */
static const int own_calls[] = { SYS_ioctl,      SYS_read,  SYS_write,       SYS_newfstatat,
				 SYS_exit_group, SYS_wait4, SYS_rt_sigreturn };

struct filter {
	struct sock_filter code[256];
	unsigned short n;
};

static void add(struct filter *f, struct sock_filter line)
{
	if (f->n < ELEMENTS(f->code))
		f->code[f->n++] = line;
}

static void answer(struct filter *f, long nr, uint32_t with)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1));
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, with));
}

static int install(const char *numbers, uint32_t listed, uint32_t rest)
{
	static struct filter f;
	struct sock_fprog program = { .filter = f.code };
	char *end;

	add(&f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	if (listed != SECCOMP_RET_ALLOW)
		answer(&f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	for (const char *at = numbers; *at; at = *end ? end + 1 : end)
		answer(&f, strtol(at, &end, 10), listed);
	for (size_t i = 0; listed == SECCOMP_RET_ALLOW && i < ELEMENTS(own_calls); i++)
		answer(&f, own_calls[i], SECCOMP_RET_ALLOW);
	add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rest));
	program.len = f.n;
	if (f.n == ELEMENTS(f.code) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* A queue, and a child with one; then what comes from outside, until standard input ends. */
static int work_and_leave(void)
{
	int status = -1, queue;
	pid_t child;

	queue = create();
	if (queue < 0 || update(queue, 50) < 0)
		return 3;
	child = fork();
	if (child == 0)
		_exit(create() < 0);
	if (waitpid(child, &status, 0) < 0 || status)
		return 4;
	wait_for_line();
	if (destroy(queue) < 0)
		return 5;
	pthread_exit(NULL);
}

static int only(void)
{
	return install(word, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS) < 0 ? 2 : work_and_leave();
}

static int deny(void)
{
	return install(word, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW) < 0 ? 2 : work_and_leave();
}

static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
	{ "cancel", cancel }, { "leave", leave }, { "outlived", outlived }, { "exit7", exit7 },
	{ "zombie", zombie }, { "only", only },   { "deny", deny },         { "storm", storm },
	{ "idle", idle },     { "spin", spin },
};

int main(int argc, char **argv)
{
	driver = open(getenv("GPREEMPT_KFD"), O_RDWR | O_CLOEXEC);
	if (argc > 2)
		word = argv[2];
	for (size_t i = 0; argc > 1 && i < ELEMENTS(parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].run();
	return 99;
}
