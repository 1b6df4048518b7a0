/* SPDX-License-Identifier: MIT */
/* A queue of our own on the real driver, without a runtime, and packets for it that run no code. */
#ifndef GP_BACKEND_KFD_PACKETS_H
#define GP_BACKEND_KFD_PACKETS_H

#include <stdint.h>

#include "backend/trial.h"

#define GP_PACKETS_MOST 32 /* that may be under way at a time */

struct gp_packets;

/* 0 or -errno; trial->step says what was being tried. */
typedef int gp_packets_job(struct gp_packets *p, struct gp_trial *trial);

/*
 * Creates a queue on the first GPU that lets us, does the job and gives everything back.
 * is_debugged: a debugger may come, which a process says before its first queue.
 * -ENODEV: no GPU; else the error of the step.
 */
int gp_packets_try(gp_packets_job *job, int is_debugged, struct gp_trial *ret);

uint32_t gp_packets_queue_id(const struct gp_packets *p);
/* UPDATE_QUEUE: 0 stops it. */
int gp_packets_update(struct gp_packets *p, uint32_t percent, uint64_t *ret_ns);
/* One more packet. What it returns goes from 1 to 0 when the packet has run. */
volatile int64_t *gp_packets_put(struct gp_packets *p);
int gp_packets_ended(const volatile int64_t *value, uint64_t timeout_ns);
uint64_t gp_packets_now(void); /* CLOCK_MONOTONIC */
/* An ioctl, again when it was interrupted. 0 or -errno. */
int gp_kfd_call(int fd, unsigned long request, void *args);

#endif
