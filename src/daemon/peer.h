/* SPDX-License-Identifier: MIT */
/*
 * Whoever is at the other end of a connection: an agent, a tool, or a proxy of our own.
 * Nothing here waits: what a peer does not read is kept for it up to a bound, and then the
 * peer is dropped (an agent that is dropped resumes by itself).
 *
 * A peer dies in two steps: gp_peer_drop() may be called from anywhere, and the manager
 * takes the dead apart when nobody has hold of one any more.
 */
#ifndef GP_DAEMON_PEER_H
#define GP_DAEMON_PEER_H

#include "base/list.h"
#include "base/map.h"
#include "daemon/loop.h"
#include "wire/wire.h"

#define GP_MOST_PEERS 512
#define GP_MOST_PEERS_OF_A_USER 128 /* who has no rights over others */
#define GP_MOST_UNREAD (4u << 20)   /* bytes */

struct gp_client;
struct gp_peer;

struct gp_peer_calls {
	void (*message)(void *arg, struct gp_peer *p, const struct gp_msg *msg);
	void (*read_all)(void *arg, struct gp_peer *p); /* it has taken all that was kept for it */
	void (*dead)(void *arg);                        /* there is one to take apart */
};

struct gp_peer {
	struct gp_list all;
	uint64_t id; /* never used twice; 0 is nobody's */
	struct gp_loop *loop;
	const struct gp_peer_calls *calls;
	void *arg;
	struct gp_watch watch;
	struct gp_alarm patience; /* with a peer that does not say HELLO, or does not read */
	uint64_t patience_ns;
	struct gp_list unread; /* packets it has not taken yet */
	size_t unread_bytes;
	int deaf; /* it has closed, and may have said something before */
	int dead;

	uint32_t role; /* enum gp_role; 0: it has not said HELLO */
	uint32_t ways, rights;
	uint32_t pid, uid;        /* by the kernel's word */
	struct gp_client *client; /* an agent's or a proxy's */
	struct gp_map queues;     /* an agent's number of a queue: struct gp_queue */
	int listing;              /* a tool's LIST is being answered, as it reads the answers */
	uint32_t list_serial;
	uint64_t listed; /* the last queue that was */
};

/* Takes fd. patience_ns: how long it may leave everything unread. */
int gp_peer_new(struct gp_loop *loop, int fd, uint64_t id, uint64_t patience_ns,
		const struct gp_peer_calls *calls, void *arg, struct gp_peer **ret);
void gp_peer_free(struct gp_peer *p);
/* Asks the kernel who it is. group: whose members have rights, or -1. */
int gp_peer_identify(struct gp_peer *p, int64_t group);
/* Drops it unless it says HELLO in time. */
void gp_peer_expect_hello(struct gp_peer *p, uint64_t ns);

/* -EPIPE: it hears no more, maybe since now. */
int gp_peer_send(struct gp_peer *p, const struct gp_msg *msg);
int gp_peer_has_unread(const struct gp_peer *p);
int gp_peer_error(struct gp_peer *p, uint32_t serial, int status, const char *text);
void gp_peer_drop(struct gp_peer *p, const char *why); /* why: to be logged, or NULL */

#endif
