/* SPDX-License-Identifier: MIT */
/* Times are nanoseconds. */
#ifndef GP_BASE_TIME_H
#define GP_BASE_TIME_H

#include <stdint.h>

#define GP_US ((uint64_t)1000)
#define GP_MS ((uint64_t)1000000)
#define GP_S ((uint64_t)1000000000)

#endif
