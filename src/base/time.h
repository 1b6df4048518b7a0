/* SPDX-License-Identifier: MIT */
/* Times are nanoseconds. */
#ifndef GP_BASE_TIME_H
#define GP_BASE_TIME_H

#include <stdint.h>

#define GP_US ((uint64_t)1000)
#define GP_MS ((uint64_t)1000000)
#define GP_S ((uint64_t)1000000000)

/* UINT64_MAX is never, and so is what comes after it. */
static inline uint64_t gp_time_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

#endif
