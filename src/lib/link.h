/* SPDX-License-Identifier: MIT */
/*
 * A tool's connection to gpreemptd.  One question at a time; every wait has an end.
 * After an error the connection is of no more use: close it, and whatever was held over
 * it runs again.
 */
#ifndef GP_LIB_LINK_H
#define GP_LIB_LINK_H

#include "wire/wire.h"

/* The serial of a hint that is answered though nobody waits: no question has it. */
#define GP_LINK_HINT UINT32_MAX

struct gp_link {
	int fd;
	uint32_t serial;
	uint32_t rights;                /* GP_RIGHT_* */
	uint32_t features;              /* GP_FEATURE_*: as WELCOME says; 0 before */
	uint64_t patience_ns;           /* for an answer */
	struct gp_msg_error about_hint; /* what was said to that one; status 0: nothing */
	struct gp_msg msg;              /* what is asked, then what was answered */
	unsigned char packet[GP_WIRE_MOST_BYTES];
};

/*
 * -ENOENT, -ENOTDIR, -ECONNREFUSED: nobody listens; any other: somebody does, and we are not served. -EACCES;
 * -EKEYREJECTED: run by neither root nor this user; -EPROTO: of another version; -ETIMEDOUT.  refusal: what
 * the one who is there says to it, in its words; empty if it said nothing.
 */
int gp_link_open(const char *path, struct gp_link **ret, char *refusal, size_t size);
/* Never says a word: in a child after fork() the connection is still the parent's. */
void gp_link_close(struct gp_link *link);
/* The first step alone: a socket that is connected to somebody we trust. waits: as long as a listener takes
 * to accept, which has an end; else it does not, and that is -EAGAIN. */
int gp_link_connect(const char *path, int waits, int *ret_fd, char *refusal, size_t size);
/* What this process says of itself, to be sent as the first message. */
void gp_link_hello(struct gp_msg *ret);
/* A fresh link->msg of this type, all its fields zero. */
void gp_link_begin(struct gp_link *link, uint32_t type);
/* Sends link->msg. */
int gp_link_ask(struct gp_link *link);
/* The next message that answers, in link->msg; ERROR is one of them. */
int gp_link_answer(struct gp_link *link, uint64_t timeout_ns);

#endif
