// SPDX-License-Identifier: MIT
#include "cli/clock.h"

#include <time.h>

#include "base/time.h"

static uint64_t ns_of(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* cannot fail for these */
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

uint64_t gp_now_ns(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

uint64_t gp_wall_ns(void)
{
	return ns_of(CLOCK_REALTIME);
}
