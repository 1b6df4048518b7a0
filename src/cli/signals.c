// SPDX-License-Identifier: MIT
#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

static void fill(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void gp_signals_block(void)
{
	sigset_t set;

	fill(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

int gp_signals_fd(void)
{
	sigset_t set;
	int fd;

	gp_signals_block();
	fill(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int gp_signals_wait(uint64_t ns)
{
	const struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000),
					  .tv_nsec = (long)(ns % 1000000000) };
	sigset_t set;
	int signal;

	fill(&set);
	signal = sigtimedwait(&set, NULL, &timeout);
	return signal > 0 ? signal : 0;
}
