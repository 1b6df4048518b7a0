// SPDX-License-Identifier: MIT
/* bed: timeout=240 param=cus=4 */
/*
 * A signal can come while the driver makes its record of a process that opens it. The record is then given
 * up, though others may have found it by the process's number.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define WANTED 40 /* opens that a signal ends */
#define EACH 20   /* by one process, which can do it no more once one succeeds */
#define STEP_US 100
#define STEPS 32

static struct kfd kfd;
static volatile int *interrupted;

static void nothing(int signal)
{
	(void)signal;
}

/* How long the driver takes until a signal matters is not known: each time it comes a little later. */
static void alarm_later(int turn)
{
	struct itimerval timer = { .it_value.tv_usec = STEP_US * (1 + turn % STEPS) };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void open_many_times(int turn)
{
	int fd = -1;

	for (int i = 0; i < EACH && fd < 0; i++) {
		alarm_later(turn + i);
		fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		*interrupted += fd < 0 && errno == EINTR;
	}
	_exit(0);
}

/* Looks at the process all the while: each look finds the driver's record of it, or none. */
static void look_at_openers(int session)
{
	struct sigaction action = { .sa_handler = nothing };
	uint64_t end = kfd_now() + 2 * KFD_SOON;
	int processes = 0;

	sigaction(SIGALRM, &action, NULL);
	for (; *interrupted < WANTED && kfd_now() < end; processes++) {
		pid_t opener = fork();

		if (opener == 0)
			open_many_times(processes);
		while (waitpid(opener, NULL, WNOHANG) == 0)
			session_state(session, opener, 0);
	}
	ok(*interrupted >= WANTED, "%d opens of the driver, by %d processes, are interrupted by signals",
	   *interrupted, processes);
}

int main(void)
{
	int session;

	if (session_missing())
		return 0;
	interrupted =
		mmap(NULL, sizeof(*interrupted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	session = kfd_open(&kfd) == 0 ? session_open(&kfd, 0) : -1;
	if (!ok(session >= 0, "there is a session"))
		return tap_done();
	look_at_openers(session);
	ok(session_state(session, getpid(), 0) == 0, "and the driver goes on");
	return tap_done();
}
