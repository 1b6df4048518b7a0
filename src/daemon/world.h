/* SPDX-License-Identifier: MIT */
/*
 * The clients and queues there are, by the word of agents and proxies and by what scans
 * find, joined: by host pid, then by ring address, else by queue id.  Book-keeping alone.
 *
 * A queue lives while somebody has it: its agent, a proxy, or the last scan.  One that is
 * held stays for its hold's sake while its process lives, unlisted: an agent that comes
 * back with it finds the hold still there.
 */
#ifndef GP_DAEMON_WORLD_H
#define GP_DAEMON_WORLD_H

#include <stdbool.h>

#include "base/list.h"
#include "base/map.h"
#include "core/core.h"
#include "daemon/peer.h"
#include "daemon/route.h"
#include "discover/classes.h"
#include "discover/discover.h"

/* How a queue is reached: a peer, and what it told, with its own number for the queue. */
struct gp_contact {
	struct gp_peer *peer; /* NULL: not in this way */
	struct gp_msg_queue told;
};

enum gp_proxy_state { GP_PROXY_NONE, GP_PROXY_STARTING, GP_PROXY_READY, GP_PROXY_ENDING };

struct gp_client {
	struct gp_list all;
	uint64_t handle;
	uint32_t pid, uid;           /* uid: UINT32_MAX if unknown */
	struct gp_process process;   /* none: what a recorded tree tells of, or there are too many */
	struct gp_account *payer;    /* of the handle */
	struct gp_identity identity; /* as it was at seen_ns */
	uint64_t seen_ns;
	uint64_t start;           /* of the process: gp_proc_start(); 0: unknown */
	struct gp_identity owner; /* whose it was when somebody last did something to it */
	uint64_t account;         /* key of the one that it is charged to */
	bool trusted;             /* may be online by its own word */
	uint32_t granted;         /* its class, by the socket that it came through; unknown: rules say */
	uint32_t ordered;         /* its class, by CLASS; unknown: nobody said */
	bool scanned;             /* the last scan found it */
	uint64_t gone_ns;         /* when its agent or proxy last said that a queue is gone */
	struct gp_found_client found;
	char name[GP_NAME_LEN], tag[64];
	uint32_t seen; /* the class that its environment says */
	struct gp_peer *agent, *proxy;
	enum gp_proxy_state proxy_state;
	struct gp_alarm unused;  /* the proxy, for some time */
	uint32_t proxy_failures; /* in a row */
	uint64_t proxy_retry_ns; /* none is started before */
	struct gp_list queues;
	uint64_t wholes;         /* a bit for each device on which a session may stop its new queues */
	uint32_t session_serial; /* sessions.c's own */
	uint32_t told_class;     /* to the driver: settings.c's own */
	uint32_t hinters;        /* tools of this process that give hints */
	uint32_t weight;         /* 0: not said */
	uint64_t slo_ns;         /* 0: none */
	uint64_t put_off_ns, starved_ns; /* when the journal was last told so */
	struct gp_class_verdict verdict; /* of the process as a whole */
	struct gp_declared *job;         /* that it is of: jobs.c's own; NULL: none */
	uint64_t jobs_seen;              /* which of them it was looked for in */
	struct gp_core_usage before_job;
	void *manager;
};

/* Its state is the core's. */
struct gp_queue {
	struct gp_list all, of_client, in_line;
	uint64_t handle;
	struct gp_client *client;
	struct gp_contact agent, proxy;
	uint64_t confirmed_ns;       /* when the driver was asked, and showed it */
	struct gp_found_queue scan;  /* as it was found last */
	struct gp_found_queue found; /* the scan's and the agent's word in one */
	uint32_t client_class;       /* as it was judged last; by which rule is asked again: gp_verdict() */
	uint32_t activity;           /* enum gp_activity_kind */
	bool scanned;                /* the last scan found it */
	bool parked;                 /* by a reservation */
	bool cannot_resume;          /* it was said so */

	uint64_t unparkable_until_ns;
	struct gp_manner asked; /* how those who hold it want it stopped */
	struct gp_route route;
	struct gp_list waiters;
	void *manager;
};

struct gp_world {
	struct gp_map clients;                  /* by pid */
	struct gp_map queues;                   /* by handle */
	struct gp_list all_clients, all_queues; /* in order of handle */
	struct gp_list line; /* queues, as reservations let them run: src/daemon/reserve.c */
	uint64_t last_handle;
	const char *root;
	struct gp_devices devices;
	struct gp_loop *loop;
	struct gp_accounts *accounts;
	size_t processes, most_processes; /* known by a handle */
	bool driver_shows;                /* queues, as of the last scan; else agents alone can tell */
	bool is_scanned;                  /* now */
	struct gp_map went;               /* by pid: clients that did since that scan began */
	void *manager;
	/* A queue has come, or come within reach; it is about to go. */
	void (*came)(void *manager, struct gp_queue *q);
	void (*goes)(void *manager, struct gp_queue *q);
	int (*client_came)(void *manager, struct gp_client *c); /* -ENOMEM */
	void (*client_goes)(void *manager, struct gp_client *c);
	/* Whether it must stay, though nobody has it. */
	bool (*needed)(void *manager, const struct gp_queue *q);
	void (*overdue)(void *queue);
	void (*proxy_unused)(void *client);
};

/* Handles begin behind those of every gpreemptd before, which tools may still have: at the microseconds since
 * the machine was started. */
void gp_world_init(struct gp_world *w, uint64_t now_ns);
void gp_world_free(struct gp_world *w);

/* process: of that number, or NULL. A pid that came into other hands is a new client. -ENOMEM */
int gp_world_client(struct gp_world *w, uint32_t pid, const struct gp_process *handle,
		    struct gp_client **ret);
struct gp_client *gp_world_client_by_handle(const struct gp_world *w, uint64_t handle); /* NULL: none */
/* Who it is now, as far as this step of the loop goes. */
const struct gp_identity *gp_client_identity(const struct gp_world *w, struct gp_client *c);
/* Whether it has become another user's since this was last asked. */
bool gp_client_changed_hands(struct gp_world *w, struct gp_client *c);
/* A queue by its client's agent or proxy. -ENOSPC: too many. */
int gp_world_told(struct gp_world *w, struct gp_peer *peer, const struct gp_msg_queue *told,
		  struct gp_queue **ret);
/* Its agent or proxy says that it is gone. */
void gp_world_gone(struct gp_world *w, struct gp_peer *peer, uint64_t number);
/* Agent or proxy is gone itself. */
void gp_world_unlink(struct gp_peer *peer);
/* Each scan is between these two: what it says of a process that ends meanwhile is older. */
void gp_world_scan_begins(struct gp_world *w);
void gp_world_scan_ends(struct gp_world *w);
/* Takes found. That a queue has come or gone since it was begun is newer. */
void gp_world_scan(struct gp_world *w, struct gp_found *found, uint64_t begun_ns);
/*
 * Those that the last scan did not find, with their pids: simulated ones, and who has no queue yet.  How
 * many; the caller frees them.
 */
size_t gp_world_unseen(const struct gp_world *w, struct gp_found_client **ret);
/* Takes what /proc says of them: where they are. */
void gp_world_take_places(struct gp_world *w, struct gp_found_client *unseen, size_t n);
/* Its queues, and the client itself, if nobody has them any more. */
void gp_world_tidy(struct gp_world *w, struct gp_client *client);
void gp_world_tidy_all(struct gp_world *w);

struct gp_queue *gp_world_queue(const struct gp_world *w, uint64_t handle);
bool gp_queue_listed(const struct gp_queue *q);
void gp_queue_note_active(struct gp_queue *q, uint32_t active); /* what the last scan saw of it is older */
/* Who answers for what is said of it; NULL: nobody is there who says anything. */
struct gp_account *gp_queue_account(const struct gp_queue *q);
/*
 * Whether the driver itself says that there is such a compute queue on the device: what counts
 * against others.  An agent's word is not enough.
 */
bool gp_queue_counts(const struct gp_world *w, const struct gp_queue *q, uint32_t device);
/* Whether others may have to wait for it: of what the driver does not show, nobody but its agent knows. */
bool gp_queue_is_shown(const struct gp_world *w, const struct gp_queue *q);
/* The number of the device that it is on; GP_NO_DEVICE: unknown. */
uint32_t gp_queue_device(const struct gp_world *w, const struct gp_queue *q);

#endif
