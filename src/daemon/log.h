/* SPDX-License-Identifier: MIT */
/*
 * One line for each event that somebody may want to know of, never for each request: on stderr, or where that
 * is systemd's journal, an entry of it with fields.
 */
#ifndef GP_DAEMON_LOG_H
#define GP_DAEMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* What a line is about, beside its words: the journal's fields. Zero: of none. */
struct gp_about {
	const char *event; /* its kind: one of GP_EVENT_WORDS */
	uint64_t number;   /* of the event, as gpreempt events --json has it */
	const char *name;  /* the client's */
	uint32_t pid;
	uint32_t has_device, device;
	uint64_t queue, latency_ns;
	const char *way;
	const char *tried; /* of what failed: "resume" */
	int32_t status;    /* -errno */
	int32_t is_warning;
};

#define GP_ABOUT_DEVICE(n) (&(struct gp_about){ .has_device = 1, .device = (n) })
#define GP_ABOUT_PROCESS(n) (&(struct gp_about){ .pid = (n) })
/* Of a struct gp_queue. */
#define GP_ABOUT_QUEUE(q) \
	(&(struct gp_about){ .pid = (q)->client->pid, .name = (q)->client->name, .queue = (q)->handle })

/* From now on lines go to the journal, if stderr does. root: what is before its path, for tests. */
void gp_log_open(const char *root);
bool gp_log_has_fields(void); /* they do */
bool gp_log_is_read(void);    /* stderr takes a line at once; one system call, for signal handlers too */

__attribute__((format(printf, 1, 2))) void gp_log(const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void gp_log_about(const struct gp_about *about, const char *fmt, ...);
/* The same, and 1 to be the exit status. */
__attribute__((format(printf, 1, 2))) int gp_die(const char *fmt, ...);

#endif
