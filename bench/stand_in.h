/* SPDX-License-Identifier: MIT */
/*
 * A gpreemptd of its own, in a tree with one GPU, and agents that stand in for real ones: they say what those
 * say, and have no queues.  What goes wrong ends the program.
 */
#ifndef GP_BENCH_STAND_IN_H
#define GP_BENCH_STAND_IN_H

#include <sys/types.h>

#include "base/time.h"
#include "wire/wire.h"

#define QUEUES 4 /* of an agent */

uint64_t clock_ns(void);
void wait_until(uint64_t ns);
void check(int is_good, const char *what);
/* A child that ends with us; 0 in it. */
pid_t spawn(void);
void end_child(pid_t pid);
uint64_t cpu_ns(pid_t pid);

/* settings: of its configuration file. */
void daemon_start(const char *path, const char *settings);
void daemon_stop(void);
pid_t daemon_process(void);
uint64_t daemon_resident_bytes(void);
void daemon_show_queues(pid_t pid); /* QUEUES of that process, as the driver shows them */

/* A connection, welcomed. */
int stand_in_open(uint32_t role, uint32_t client_class);
void stand_in_tell_queues(int fd);
void stand_in_sync(int fd); /* until all that was said has been taken in */
void stand_in_hint(int fd, uint32_t what);
void stand_in_say(int fd, const struct gp_msg *msg);
/* The next message of that type, PINGs and others left out. */
const struct gp_msg *stand_in_hear(int fd, uint32_t type);
void stand_in_obey(int fd, const struct gp_msg *wants);
/* An agent in a process of its own, known to the daemon by now, which does what it is told. */
pid_t stand_in_spawn(uint32_t client_class);

#endif
