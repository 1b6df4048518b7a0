/* SPDX-License-Identifier: MIT */
/*
 * The scheduler, and the one owner of every queue's state. It makes no system call, starts
 * no thread and reads no clock: its host (the daemon, or the simulated machine) tells it
 * what happened and when, and calls gp_core_step(), which carries out what follows.
 *
 * What it keeps, whatever a policy does:
 *  - a queue is stopped only while somebody else needs the device (or somebody holds
 *    it), and is given back as soon as that ends;
 *  - a client that waits gets a slice at least every max_starve;
 *  - a client whose stop failed is left alone for a while, longer each time; nobody else is.
 *    Meanwhile it is in the background, where there is one, and there it stays if its stop was
 *    refused;
 *  - stops are capped per second, and clients take turns to pay for theirs, a cycle each: on
 *    a device with n clients one that has paid for its last stop is stopped within n cycles'
 *    time, whatever the others do; resumes and holds are never capped;
 *  - one want per queue is under way at a time;
 *  - a hold on a queue that cannot be stopped ends: it would only deceive.
 *
 * Times are on the host's clock and never go back.
 */
#ifndef GP_CORE_H
#define GP_CORE_H

#include <gpreempt/backend.h>
#include <gpreempt/policy.h>

#include "base/hist.h"
#include "core/holds.h"

/* Of a device's caps: a want takes the place of a stop that is under way, which is not answered any more. */
#define GP_CORE_OVERTAKES (1u << 31)
/* What is on it does not run or wait together with what its client has on others. */
#define GP_CORE_APART (1u << 30)

struct gp_core;

/* What became of a queue or a policy: for who waits for it, or keeps a record. */
enum gp_core_note_kind {
	GP_NOTE_STOPPED,    /* status 0, or why it is not */
	GP_NOTE_RUNS,       /* the same */
	GP_NOTE_HELD,       /* somebody holds it now, who did not before */
	GP_NOTE_HOLD_ENDED, /* the last one has let go */
	GP_NOTE_PUT_OFF,    /* stops of its client wait; text says why */
	GP_NOTE_STARVED,    /* its client waited for too long, and has a slice */
	GP_NOTE_NO_YIELD,   /* it cannot be in the background: it is stopped while online works; text */
	GP_NOTE_NO_STOP,    /* it cannot be stopped: it stays in the background while online works; text */
	GP_NOTE_POLICY_EJECTED, /* text says why */
	GP_NOTE_REQUEST         /* a client ended one that it had hinted; latency from its begin */
};

struct gp_core_note {
	uint32_t kind;
	uint32_t device;
	uint64_t client;
	uint64_t queue; /* 0: not of a queue */
	uint64_t latency_ns;
	int32_t status;
	uint32_t unasked; /* 1: nobody asked for it: a lease ended */
	uint32_t ran;     /* 1: of a queue that runs: it did so before */
	uint32_t tried;   /* of a status that is an error: 1 + enum gp_attempt */
	const char *text; /* or NULL */
};

/* Zero means the default in brackets. */
struct gp_core_opts {
	uint64_t linger_ns;       /* online stays active this long after its last work [auto: see core.c] */
	uint64_t hint_expiry_ns;  /* a hint that is never ended is [1 s] */
	uint64_t max_starve_ns;   /* [1 s]; GP_NEVER: offline may wait for ever */
	uint64_t starve_slice_ns; /* what a starved client gets [10 ms] */
	uint64_t quantum_ns;      /* a turn, where background clients take turns [250 ms] */
	uint64_t stall_ns;        /* a policy that runs nobody for so long is ejected [250 ms] */
	uint64_t late_ns;         /* a policy whose calls take longer in one step is ejected [20 ms] */
	uint64_t lease_ns;        /* of every stop [3 s] */
	uint32_t max_stops_per_s; /* cycles to stop, per device [2000] */
	uint32_t no_turns; /* 1: background clients do not take turns (for measuring why they should) */
	uint32_t yield_on_demand; /* 1: background only while online is active, one call per request */
	uint32_t park_hints;      /* open requests for which what yields by its slice is stopped [0: never] */
	void (*note)(void *arg, const struct gp_core_note *note); /* may ask the core, not tell it */
	/* What a client is called where it says what is wrong with it.  NULL: "client", with its number. */
	void (*name)(void *arg, uint64_t client, char *text, size_t size);
	void *note_arg; /* of these two */
	/* What calls of policies that are not built in take, for their ejection alone. NULL: nobody looks. */
	uint64_t (*cpu_ns)(void);
};

struct gp_core_client {
	uint64_t id; /* below 2^63 */
	uint64_t slo_ns;
	uint64_t user;         /* whose it is */
	uint32_t client_class; /* of the queues that have none of their own */
	uint32_t weight;       /* 0: 100 */
};

/*
 * Who can have a queue stopped: nobody, those who hold it, or the policy too.  FREE: the policy too, and no
 * cycle is charged: nobody but its own client says that it is there.
 */
enum gp_reach { GP_REACH_ALL, GP_REACH_HOLDS, GP_REACH_NONE, GP_REACH_FREE };

struct gp_core_queue {
	uint64_t queue; /* handle: never used twice */
	uint64_t client;
	uint32_t device;
	uint32_t client_class; /* of this queue; GP_CLASS_UNKNOWN: as its client's */
};

/* A request that is on its way, or not done. */
struct gp_core_hint {
	uint64_t client;
	uint64_t number; /* pairs the end with the begin; 0: those without are counted, the oldest ends first
			  */
	uint64_t giver;  /* whose number it is: 0, or it ends with gp_core_hints_gone() */
	uint64_t expiry_ns; /* 0: hint_expiry_ns */
	uint32_t device;    /* or GP_ALL_DEVICES */
	uint32_t reserved;
};

/* What the host is to carry out now, on one device. Valid until the next gp_core_take(). */
struct gp_action {
	uint32_t device;
	uint32_t stops; /* how many of the wants are stops */
	struct gp_want *wants;
	size_t nwants;
	struct gp_apply_opts opts;
};

struct gp_core_status {
	char policy[GP_NAME_LEN];
	char reason[128];   /* why a stop was last put off, or a stop or resume failed, */
	uint64_t reason_ns; /* and when */
	char ejection[128]; /* why the last policy that was chosen was ejected; empty: it was not */
	uint32_t mechanism; /* enum gp_mechanism: what a stop would use now */
	uint32_t ejected;
	uint64_t preemptions; /* actions to stop somebody for somebody else */
	uint64_t suspends;
	uint64_t resumes;
	uint64_t failures;
	uint64_t limited;              /* times a stop was put off */
	uint64_t hinted, sampled;      /* times online work began by a hint, and by what its queues showed */
	uint64_t backoff_until_ns;     /* 0, or when the budget allows a stop that waits for it */
	const struct gp_hist *suspend; /* latency of each stop; the core's */
	const struct gp_hist *resume;
};

struct gp_core_queue_status {
	uint64_t client;
	uint32_t device;
	uint32_t state;  /* enum gp_queue_state */
	uint32_t wanted; /* enum gp_want_kind */
	uint32_t client_class;
	uint32_t held;
	uint32_t for_others; /* 1: the policy wants it stopped, held or not */
	uint32_t reserved;
	uint64_t backoff_until_ns; /* 0, or when its client, of which a stop failed, may be stopped again */
};

/* One client on one device, with its queues of one kind: online, or not. */
struct gp_core_seat {
	uint64_t client;
	uint64_t slo_ns;
	uint64_t hinted, sampled; /* times it became active by a hint, and by what its queues showed */
	uint32_t device;
	uint32_t client_class;
	uint32_t weight;
	uint32_t state; /* enum gp_client_state */
	uint32_t queues;
	uint32_t stopped;        /* of them, */
	uint32_t resuming;       /* and of those: to run, as soon as that works */
	uint32_t hints;          /* open */
	uint32_t share_permille; /* of the last 10 s, in which it had work and was not told to wait */
};

/* What a client has had of all devices since it came. */
struct gp_core_usage {
	uint64_t ran_ns;    /* it had work, and was not told to wait */
	uint64_t waits;     /* times it was told to wait for others' work, */
	uint64_t waited_ns; /* and how long it did */
};

struct gp_core *gp_core_new(const struct gp_core_opts *opts); /* NULL: no memory */
struct gp_core *gp_core_free(struct gp_core *core);
void gp_core_change_opts(struct gp_core *core, const struct gp_core_opts *opts); /* all but calls */

/* -EEXIST, -ENOENT and -ENOMEM as one would expect; devices begin with the policy priority. */
int gp_core_device_add(struct gp_core *core, uint32_t device, uint32_t caps);
int gp_core_device_caps(struct gp_core *core, uint32_t device, uint32_t caps);  /* they have changed */
int gp_core_device_remove(struct gp_core *core, uint32_t device, uint64_t now); /* -EBUSY: with queues */
int gp_core_client_add(struct gp_core *core, const struct gp_core_client *client);
int gp_core_client_get(struct gp_core *core, uint64_t client, struct gp_core_client *ret);
int gp_core_client_change(struct gp_core *core, const struct gp_core_client *client, uint64_t now);
int gp_core_client_remove(struct gp_core *core, uint64_t client, uint64_t now);
int gp_core_queue_add(struct gp_core *core, const struct gp_core_queue *queue, uint64_t now);
int gp_core_queue_remove(struct gp_core *core, uint64_t queue, uint64_t now);
/* It keeps what it is, was asked for and is held by. GP_CLASS_UNKNOWN: as its client's. */
int gp_core_queue_class(struct gp_core *core, uint64_t queue, uint32_t client_class, uint64_t now);
/* At first, GP_REACH_ALL. Agents come and go. */
int gp_core_queue_reach(struct gp_core *core, uint64_t queue, enum gp_reach reach, uint64_t now);

int gp_core_activity(struct gp_core *core, uint64_t queue, uint32_t activity, uint64_t now);
/* A number that is open already is renewed. -EPERM: the client is not online; -EBUSY: too many are open. */
int gp_core_hint_begin(struct gp_core *core, const struct gp_core_hint *hint, uint64_t now);
int gp_core_hint_end(struct gp_core *core, const struct gp_core_hint *hint, uint64_t now); /* -EALREADY */
void gp_core_hints_gone(struct gp_core *core, uint64_t client, uint64_t giver, uint64_t now);

/*
 * Somebody with the right to do so wants it stopped, whatever the policy says: holds.h.  -ENOTSUP: nobody
 * can stop it.  A hold whose stop fails ends, unless the one who would have done it is gone (-ESRCH): that
 * one may come back.
 */
int gp_core_hold(struct gp_core *core, const struct gp_hold *hold, uint64_t now);
int gp_core_release(struct gp_core *core, uint64_t queue, struct gp_whose whose, uint64_t now);
/* What holds its client's new queues holds this one. -ENOSPC, -ENOMEM: not all of them do. */
int gp_core_adopt(struct gp_core *core, uint64_t queue, uint64_t now);
void gp_core_holder_gone(struct gp_core *core, uint64_t holder, uint64_t now);
void gp_core_free_client(struct gp_core *core, uint64_t client, uint64_t now); /* of all holds */
const struct gp_holds *gp_core_holds(const struct gp_core *core);

/*
 * A want that was taken has ended; want.status says how.  One nobody asked for (a lease ended) counts too.
 * After a doubtful one the queue is resumed, whatever is wanted of it.
 */
int gp_core_done(struct gp_core *core, const struct gp_done *done, uint64_t now);

/* The new policy takes over the clients that wait. -E2BIG, -EPROTO, -EINVAL: not such a table. */
int gp_core_set_policy(struct gp_core *core, uint32_t device, const struct gp_policy_ops *ops, uint64_t now);

/* Who carries out the wants, and who looks on. What apply() gives no status has failed. */
struct gp_core_host {
	const struct gp_backend_ops *ops; /* apply and complete */
	struct gp_backend *backend;
	void (*acts)(void *arg, const struct gp_action *action); /* or NULL: before it is carried out */
	void (*done)(void *arg, const struct gp_done *done);     /* or NULL: before the core hears of it */
	void *arg;
};

/*
 * Takes in what has ended, decides, and has it carried out, until nothing is left to do now.  Returns when
 * to call again if nothing happens, GP_NEVER if there is nothing to wait for.
 */
uint64_t gp_core_step(struct gp_core *core, const struct gp_core_host *host, uint64_t now);
/* The parts of a step: decides, as gp_core_step() returns; then 1: an action, 0: no more for now. Every want
 * handed out must be answered by gp_core_done(). */
uint64_t gp_core_run(struct gp_core *core, uint64_t now);
int gp_core_take(struct gp_core *core, struct gp_action *ret, uint64_t now);

int gp_core_device_status(struct gp_core *core, uint32_t device, struct gp_core_status *ret);
/* All but what the host counts: cycles, queues that stand still or yield, slices. */
int gp_core_device_stats(struct gp_core *core, uint32_t device, struct gp_stats *ret, uint64_t now);
/* How many there are; at most n are written. */
int gp_core_seats(struct gp_core *core, uint64_t client, struct gp_core_seat *ret, size_t n, uint64_t now);
int gp_core_client_usage(struct gp_core *core, uint64_t client, struct gp_core_usage *ret, uint64_t now);
int gp_core_queue_status(struct gp_core *core, uint64_t queue, struct gp_core_queue_status *ret);

#endif
