/* SPDX-License-Identifier: MIT */
/* The signals that end a program that waits, taken at a point of its choosing. */
#ifndef GP_CLI_SIGNALS_H
#define GP_CLI_SIGNALS_H

#include <stdint.h>

void gp_signals_block(void); /* SIGINT, SIGTERM, SIGHUP */
/* The same, and a descriptor that is readable once one came; -errno. */
int gp_signals_fd(void);
/* The one that came within this time, or 0. */
int gp_signals_wait(uint64_t ns);

#endif
