/* SPDX-License-Identifier: MIT */
#ifndef GP_CLI_CLOCK_H
#define GP_CLI_CLOCK_H

#include <stdint.h>

uint64_t gp_now_ns(void);  /* never goes back: for how long something takes */
uint64_t gp_wall_ns(void); /* jumps: for when something happened, as people and events say it */

#endif
