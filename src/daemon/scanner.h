/* SPDX-License-Identifier: MIT */
/* Reads what the machine knows of its queues; beside everything else, once that took long. */
#ifndef GP_DAEMON_SCANNER_H
#define GP_DAEMON_SCANNER_H

#include <pthread.h>

#include "daemon/loop.h"
#include "discover/discover.h"

struct gp_scanner {
	struct gp_loop *loop;
	char *root;            /* its own: the configuration may be read again meanwhile */
	void (*fn)(void *arg); /* it has read */
	void *arg;
	struct gp_found *found;         /* the caller's; NULL if r < 0 */
	struct gp_found_client *others; /* the caller's: what /proc says of processes it asked for */
	size_t nothers;
	int r;
	uint64_t begun_ns; /* what came later is newer than what was read */
	uint64_t cpu_ns;   /* that the last reading used */
	struct gp_watch ended;
	pthread_t thread;
	bool is_slow; /* one took long: nobody waits for the next ones */
	bool is_reading;
};

int gp_scanner_open(struct gp_scanner *s, struct gp_loop *loop, const char *root, void (*fn)(void *arg),
		    void *arg);
void gp_scanner_close(struct gp_scanner *s);
/*
 * Calls fn, before it returns or in a later step. Nothing if it is at it. Takes others, of which pid counts.
 */
void gp_scanner_begin(struct gp_scanner *s, struct gp_found_client *others, size_t nothers);

#endif
