/* SPDX-License-Identifier: MIT */
/*
 * Whoever is at the other end of a connection: an agent, a tool, or a proxy of our own.
 * Nothing here waits: what a peer does not read is kept for it up to a bound, and then the
 * peer is dropped (an agent that is dropped resumes by itself).
 *
 * A peer is the process that connected, by its handle, with the rights it had then: they
 * only shrink.  Every message bears who sent it, by the kernel's word; one from another
 * process or another user ends the connection, and so does the end of the process, whoever
 * else keeps the descriptor.
 *
 * A peer dies in two steps: gp_peer_drop() may be called from anywhere, and the manager
 * takes the dead apart when nobody has hold of one any more.
 */
#ifndef GP_DAEMON_PEER_H
#define GP_DAEMON_PEER_H

#include "base/list.h"
#include "base/map.h"
#include "daemon/account.h"
#include "daemon/devices.h"
#include "daemon/events.h"
#include "daemon/loop.h"
#include "daemon/process.h"
#include "wire/wire.h"

#define GP_MOST_UNREAD (1u << 20) /* bytes of one peer; its account has a limit for all */

struct gp_client;
struct gp_peer;

struct gp_peer_calls {
	void (*message)(void *arg, struct gp_peer *p, const struct gp_msg *msg);
	void (*read_all)(void *arg, struct gp_peer *p); /* it has taken all that was kept for it */
	void (*dead)(void *arg, struct gp_peer *p);     /* to be taken apart */
};

enum gp_listing { GP_LISTS_NOTHING, GP_LISTS_QUEUES, GP_LISTS_CLIENTS };

struct gp_peer {
	struct gp_list all;
	struct gp_list of_dead;
	uint64_t id; /* never used twice; 0 is nobody's */
	struct gp_loop *loop;
	const struct gp_peer_calls *calls;
	void *arg;
	struct gp_watch watch;
	struct gp_alarm patience; /* with a peer that does not say HELLO, or does not read */
	uint64_t patience_ns;
	uint64_t lease_ns;     /* that it was told */
	struct gp_list unread; /* packets it has not taken yet */
	size_t unread_bytes;
	bool takes_descriptors; /* somebody may send some: each packet is looked at first */
	bool wants_more;        /* of a list, when it can take it */
	uint32_t alone;         /* turns in a row in which one message, or none, was found */
	int deaf;               /* it has closed, and may have said something before */
	int dead;

	struct gp_account *account;
	struct gp_process process;
	struct gp_watch ended; /* the process; where it has no pidfd, gp_peer_look() sees it */
	struct gp_identity identity;
	uint32_t pid, uid;  /* by the kernel's word, when it connected */
	uint32_t speaks_as; /* the real uid that its messages bear */
	bool has_spoken;
	bool is_known;   /* it has spoken since we know its process: now we know that it is it */
	bool is_ours;    /* the other end is a process that we started */
	bool is_counted; /* among its account's */

	uint32_t role; /* enum gp_role; 0: it has not said HELLO */
	uint32_t ways, rights;
	uint32_t granted;  /* enum gp_class, by the socket it came through; unknown: that says nothing */
	uint32_t features; /* GP_FEATURE_*: that both have */
	struct gp_msg_hello hello;
	int refused; /* -errno: it is told so when it has said HELLO, and why */
	const char *refusal;
	struct gp_list requests;  /* that it waits for */
	struct gp_client *client; /* an agent's or a proxy's */
	struct gp_map queues;     /* an agent's number of a queue: struct gp_queue */
	enum gp_listing
		listing; /* what a tool's list is of that is being answered, as it reads the answers */
	uint32_t list_serial;
	uint64_t listed;                /* the last queue or client that was */
	struct gp_event_reader *events; /* NULL: it has not asked for any */
	/* Simulated ones that it told of. An agent tells of one: its queues are on it. */
	struct gp_device *devices[GP_MOST_TOLD];
	uint32_t ndevices;
	uint64_t hints_for; /* a tool's: its own process's client, once it gave a hint; 0: it did not */
};

/* Takes fd. patience_ns: how long it may leave everything unread. */
int gp_peer_new(struct gp_loop *loop, int fd, uint64_t id, uint64_t patience_ns,
		const struct gp_peer_calls *calls, void *arg, struct gp_peer **ret);
/* Asks the kernel who it is; group: whose members have rights, or -1. -ESRCH: nobody we can see. */
int gp_peer_identify(struct gp_peer *p, int64_t group);
/* Takes the account; from now on it is heard. */
int gp_peer_begin(struct gp_peer *p, struct gp_account *account);
/* false: not now, because to close its socket would take as long as it likes; ask again. */
bool gp_peer_may_free(struct gp_peer *p);
void gp_peer_free(struct gp_peer *p);
/* Drops it unless it says HELLO in time. */
void gp_peer_expect_hello(struct gp_peer *p, uint64_t ns);
/* Whether something came that has not been read. */
bool gp_peer_has_input(const struct gp_peer *p);
/* Drops it if its process has ended. */
void gp_peer_look(struct gp_peer *p);

/* -EPIPE: it hears no more, maybe since now. */
int gp_peer_send(struct gp_peer *p, const struct gp_msg *msg);
bool gp_peer_has_unread(const struct gp_peer *p);
/* Calls read_all when others have had their turn and it can take more. */
void gp_peer_more_later(struct gp_peer *p);
int gp_peer_error(struct gp_peer *p, uint32_t serial, int status, const char *text);
void gp_peer_drop(struct gp_peer *p, const char *why); /* why: to be logged, or NULL */
/* Answers with the error, and drops it. */
void gp_peer_refuse(struct gp_peer *p, uint32_t serial, int status, const char *why);

#endif
