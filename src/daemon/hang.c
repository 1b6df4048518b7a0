// SPDX-License-Identifier: MIT
#include "daemon/hang.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/log.h"

#define MOST_CPU_S 3 /* in one step of the loop */

static char mark[128];
static uint64_t armed_ns;
static timer_t timer;
static bool has_timer;

/* Nothing but system calls: whoever hangs may have any lock. */
static void hangs(int signal_number)
{
	static const char said[] =
		"gpreemptd: a policy does not return; it ends, and the next one begins with fifo\n";
	int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	(void)signal_number;
	if (gp_log_is_read())
		(void)!write(STDERR_FILENO, said, sizeof(said) - 1);
	if (fd >= 0)
		(void)close(fd);
	_exit(70); /* EX_SOFTWARE: systemd starts it again */
}

bool gp_hang_watch(const char *socket)
{
	struct sigaction action = { .sa_handler = hangs };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };

	(void)snprintf(mark, sizeof(mark), "%s.hung", socket);
	(void)sigaction(SIGPROF, &action, NULL);
	has_timer = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
	return unlink(mark) == 0;
}

/* Not with every step: that would cost as much as the step. */
void gp_hang_alive(uint64_t now_ns)
{
	const struct itimerspec end = { .it_value = { .tv_sec = MOST_CPU_S } };

	if (!has_timer || now_ns - armed_ns < GP_S)
		return;
	armed_ns = now_ns;
	(void)timer_settime(timer, 0, &end, NULL);
}
