/* SPDX-License-Identifier: MIT */
/*
 * The core's objects.
 *
 *	client --< seat >-- device     a seat is one client's place on one device, for its
 *	            |                  queues of one class
 *	            +--< queue
 *
 * A seat is *active* while its client has work for the device (online: a hint, a busy
 * queue, or the linger after them; offline: a queue that is busy or may be).  An
 * active seat is owned by the policy; one that is not active always may run, so that
 * its next work starts without waiting for us.
 *
 * A program on several devices that stands still on one stalls on the others: its offline
 * seats are a gang, and run or wait together.  Online work on any of its devices makes it
 * wait on all; else it runs where any of its policies lets it (each device has its own, and
 * if all had to agree, two gangs might wait for each other).
 */
#ifndef GP_CORE_INTERNAL_H
#define GP_CORE_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "base/timers.h"
#include "base/usage.h"
#include "core/core.h"

#define MAX_OPEN_HINTS 64

enum timer_kind {
	TIMER_LINGER,
	TIMER_GUARD_END,
	TIMER_HINT,
	TIMER_RETRY,
	TIMER_POLICY,
	TIMER_STALL,
	TIMER_LIMIT,
	TIMER_BACKOFF,
	TIMER_STARVE,
	TIMER_PATIENCE,
	TIMER_PARK
};

/* How many timers each object has: room for them is reserved with it. */
enum { QUEUE_TIMERS = 1, SEAT_TIMERS = 3, CLIENT_TIMERS = 1, DEVICE_TIMERS = 6 };

struct timer {
	struct gp_timer timer; /* must be first */
	uint32_t kind;
	void *owner;
};

/*
 * What stopping by one mechanism costs here: from handing stops out to hearing of the last of them,
 * by the host's clock.  What is said of it by those who stop counts for nothing here.
 */
struct estimate {
	uint64_t cost_ns;    /* smoothed, 0: unknown */
	uint64_t slowest_ns; /* of those under way; 0: none has ended */
	uint64_t tried;
};

struct gp_policy {
	struct device *device;
	struct gp_policy_ops ops; /* complete */
	struct gp_policy_limits limits;
	void *state;
	uint64_t last_now;
	uint64_t spent_ns; /* in its calls since it last decided */
	uint32_t spins;
	uint32_t failed;
	uint32_t is_timed; /* it is not built in */
	uint32_t reserved;
};

/* The time in which at least one of some seats did something. */
struct spell {
	uint64_t since_ns, ended_ns; /* since when one does, and what has ended before */
	uint32_t seats;
	uint32_t reserved;
};

/* Of the seats of one class that have work: those that are let run, and those that are not. */
struct spells {
	struct spell runs, waits;
};

struct device {
	struct gp_core *core;
	struct gp_list node;
	uint32_t id;
	uint32_t caps;
	uint32_t dirty;
	uint32_t online; /* seats */
	uint32_t online_active;
	uint32_t owned;   /* seats the policy has */
	uint32_t running; /* of those, in the run set */
	uint32_t running_offline;
	uint32_t background;    /* offline seats are in the background now */
	uint32_t unyielding;    /* of them, those that cannot be */
	uint32_t unstoppable;   /* of them, those that cannot be stopped */
	uint32_t open_hints;    /* of online seats */
	uint32_t besides;       /* times one of them had its first beside another's */
	uint32_t park_votes[2]; /* of those with any: who is to be parked for first ones, and for queued ones
				 */
	uint32_t parks;         /* offline is off, because of them */
	uint32_t park_changes;  /* times that began or ended */
	uint32_t park_spent;    /* it was for long enough: not again before it ran, or while one is open */
	uint32_t mechanism;
	struct gp_list seats;
	struct gp_list dirty_seats;
	struct gp_list gang;    /* seats of clients that have seats on other devices too */
	struct gp_list waiting; /* owned and not in the run set, longest first */
	struct gp_list pending; /* queues whose want is to be handed out */
	struct gp_list payers;  /* seats with stops to pay for, the next to pay first */
	struct gp_policy *policy;
	struct gp_policy policies[2]; /* one in use, one to change to without asking for memory */
	struct timer policy_timer, stall_timer, limit_timer, starve_timer;
	struct timer patience_timer; /* while it is set, a turn waits for those before to be off */
	struct timer park_timer;
	uint64_t starves_since_ns; /* since when offline was parked, but for pauses of ran_ns in all */
	uint64_t ran_ns;
	uint64_t unparked_ns; /* when the last pause began */
	struct gp_want *wants;
	size_t wants_capacity;
	/* the budget of cycles: what was left, and when; limit_timer is set while it is used up */
	uint64_t credit;
	uint64_t credit_at_ns;
	uint32_t ejected;
	uint32_t paid; /* for the next list's first cycle */
	uint32_t stops_under_way;
	struct estimate estimate[GP_MECH_COUNT];
	uint64_t stops_decided;
	char reason[128];   /* of the last stop or resume that failed or was put off, */
	uint64_t reason_ns; /* and when that was */
	char ejection[128]; /* of the last policy that was chosen */
	uint64_t preemptions, suspends, resumes, failures, limited, hinted, sampled;
	uint64_t hints_expired, slo_requests, slo_met, starved;
	uint64_t failed[GP_ATTEMPTS][GP_FAILURES];
	struct spells spells[2]; /* offline, and online */
	struct gp_hist suspend, resume, requests;
};

struct hint {
	uint64_t giver, number;
	uint64_t begin_ns, end_ns; /* it expires at */
	uint32_t device;
	uint32_t reserved;
};

struct client {
	uint64_t id;
	uint64_t slo_ns;
	uint64_t user;
	uint32_t client_class;
	uint32_t weight;
	struct hint *hints; /* open, oldest first */
	uint32_t nhints, hints_capacity;
	uint64_t service_ns;
	struct timer hint_timer;
	struct gp_list seats;
	struct gp_core_usage usage; /* of its seats, but for what each does now */
};

/* Measured each way before they are compared. */
#define LEAST_SERVICES 16

/* What service took with offline running, and with offline parked. */
struct comparison {
	uint64_t first_ns[2][LEAST_SERVICES]; /* in order of size */
	uint64_t mean_ns[2];                  /* of those and what came later: of n */
	uint64_t then_ns; /* the mean of the way that is kept, when the other one was last tried */
	uint32_t n[2];
	uint32_t tries[2];
	uint32_t parks; /* the way that is kept */
	uint32_t since; /* times it was, since the other one was tried */
};

enum { REQUEST_FIRST, REQUEST_QUEUED, REQUEST_KINDS };

/* An online seat's, of which one is served at a time: learn.c. */
struct requests {
	struct comparison of[REQUEST_KINDS];
	uint32_t picked[REQUEST_KINDS]; /* the ways of this busy period */
	uint32_t preset;                /* park_hints, by which it began */
	uint32_t unordered;             /* busy periods to come without learning */
	uint32_t is_spoilt;             /* this one has nothing to say any more */
	/* the one that is served */
	uint32_t kind, is_parked, is_alone;
	uint32_t changes, besides; /* the device's, when it began */
	uint32_t is_between;       /* offline was neither parked nor running when its service began */
	uint64_t begin_ns;
};

struct seat {
	struct gp_policy_client view; /* must be first: what the policy sees */
	struct client *client;
	struct device *device;
	struct gp_list in_client, in_device, in_gang, in_dirty, in_waiting, in_payers;
	struct gp_list queues;
	struct gp_list unpaid; /* queues to stop, when the seat's turn to pay comes */
	uint32_t owes;         /* cycles of stops that were handed out */
	uint32_t nqueues;
	uint32_t nbusy;
	uint32_t nunknown;
	uint32_t open_hints; /* as the device counts them */
	uint32_t active;
	uint32_t owned;           /* by the policy: from before enqueue() until after dequeue() */
	uint32_t guarded;         /* it starved: runs whatever the policy says */
	uint32_t cannot_yield;    /* its driver refuses: while online works it is stopped, but for slices */
	uint32_t cannot_stop;     /* its driver refuses: where others run it stays in the background, and has
				     slices of its own now and then */
	uint32_t target;          /* enum gp_want_kind */
	uint32_t failures_in_row; /* of stops, since all of it was off */
	uint64_t active_since_ns;
	uint64_t hinted, sampled;
	struct gp_usage usage;
	struct spell *spell; /* in which it is counted, or NULL */
	enum { SEAT_IDLE, SEAT_RUNS, SEAT_WAITS } now_is;
	uint64_t is_since_ns;
	struct requests requests;
	struct timer linger_timer;
	struct timer guard_timer;   /* the end of a slice, or when one that cannot yield has starved */
	struct timer backoff_timer; /* until it fires, none of its queues is stopped for the policy */
};

/*
 *	           stop paid for, handed out         done
 *	RUNNING  ---------------------------> SUSPENDING ------> SUSPENDED
 *	   ^                                      | failed           |
 *	   |<-------------------------------------+                  | resume handed out
 *	   |   its seat backs off                                    v
 *	   |                   done                                  |
 *	   +-------------------------------------------------- RESUMING --+
 *	                                                          ^       | failed: again, later
 *	                                                          +-------+
 * have is what the device does, asked what was handed out last (under_way) and target
 * what we want; a change of mind before the want is handed out undoes it.  in_pending is
 * in the seat's unpaid, while a stop waits for the seat's turn to pay or for the end of its
 * back-off; then in the device's pending, as is what costs nothing: a resume, a hold.
 *
 * Where the device's wants overtake, a resume need not wait for the stop before it, and a stop
 * for a hold, which may be gentle and slow, is asked for again when the policy needs it too.
 * A stop that was overtaken, and what nobody answered, may have been done or not: the queue is
 * doubtful, and counts as stopped until a resume has worked. If it ran as far as anybody knew, that one
 * undoes the stop, and is no resume to count.
 */
struct queue {
	uint64_t handle;
	struct seat *seat;
	struct gp_list in_seat, in_pending;
	uint32_t activity;
	uint32_t have;
	uint32_t asked;
	uint32_t target;
	uint32_t under_way;
	uint32_t for_hold_alone; /* what is under way */
	uint32_t own_class;      /* GP_CLASS_UNKNOWN: its client's */
	uint32_t reach;          /* enum gp_reach */
	uint32_t doubtful;       /* it may run: a resume comes before anything else */
	uint32_t undoes;         /* what runs it next: the stop before was never seen done */
	uint32_t held;           /* as the holds have it */
	uint32_t gentle;         /* all who hold it let it run empty first */
	uint32_t retries;
	uint32_t mechanism; /* of the stop handed out last */
	uint64_t asked_ns;
	uint64_t retry_at_ns;
	struct timer retry_timer;
};

struct gp_core {
	struct gp_core_opts opts;
	struct gp_map clients;
	struct gp_map queues;
	struct gp_list devices;
	struct gp_timers timers;
	struct gp_holds *holds;
	uint32_t leases_end; /* what changes in the holds now does so because its time is over */
	uint32_t reserved;
};

/* core.c */
struct device *gp_core_find_device(struct gp_core *core, uint32_t device);
void gp_core_arm(struct gp_core *core, struct timer *t, uint64_t at_ns);
uint64_t gp_core_linger(const struct device *d);
void gp_core_follow_holds(struct gp_core *core, uint64_t now);              /* whatever changed in them */
void gp_core_note(const struct device *d, const struct gp_core_note *note); /* its device is set here */

/* seat.c */
struct seat *gp_seat_get(struct client *c, struct device *d, uint32_t client_class);
struct seat *gp_seat_new(struct client *c, struct device *d, uint32_t client_class);
void gp_seat_cannot_yield(struct seat *s, uint32_t cannot);
void gp_seat_cannot_stop(struct seat *s, uint32_t cannot);
struct seat *gp_seat_by_id(struct device *d, uint64_t id); /* as its policy knows it */
void gp_seat_free(struct seat *s, uint64_t now);
void gp_seat_tidy(struct seat *s, uint64_t now); /* it may have lost its last queue, and be freed */
void gp_seat_release(struct seat *s);
void gp_seat_withdraw(struct seat *s, uint64_t now);
void gp_seat_present(struct seat *s, uint64_t now);
void gp_seat_update(struct seat *s, uint64_t now);
void gp_seat_count(struct queue *q, int sign); /* its activity; around any change of what counts */
void gp_seat_dirty(struct seat *s);
void gp_seat_all_dirty(struct device *d);
/* Whether offline runs in the background depends on the device, and on who else is registered and active. */
void gp_seat_update_background(struct device *d);

void gp_seat_use(struct seat *s, uint64_t now); /* whether it uses the device may have changed */
void gp_seat_fire(struct seat *s, uint32_t kind, uint64_t now);
void gp_seat_starved(struct device *d, uint64_t now);
void gp_seat_watch(struct seat *s, uint64_t now); /* its target may have changed */
void gp_client_deadline(struct client *c, uint64_t now);

/* park.c */
int gp_park_may(const struct device *d);
void gp_park_count(struct seat *s, uint64_t now); /* the hints of an online seat */
void gp_park_forget(struct seat *s, uint64_t now);
void gp_park_update(struct device *d, uint64_t now);
void gp_park_over(struct device *d, uint64_t now); /* its timer fired */

/* learn.c */
void gp_learn_busy(struct seat *s);         /* its first request comes */
void gp_learn_beside(const struct seat *s); /* and so nobody else is alone any more */
void gp_learn_begin(struct seat *s, uint32_t kind, uint64_t now);
void gp_learn_end(struct seat *s, int is_in_order, uint64_t now); /* before it is counted out */

/* hint.c */
int gp_hint_may(const struct client *c); /* give any */
int gp_hint_open_for(const struct client *c, const struct device *d);
uint64_t gp_hint_oldest(const struct client *c, const struct device *d); /* when it began; GP_NEVER */
uint32_t gp_hint_count(const struct client *c, const struct device *d);
void gp_hint_expired(struct gp_core *core, struct client *c, uint64_t now);
void gp_hint_drop_all(struct gp_core *core, struct client *c);

/* stats.c */
void gp_stats_use(struct seat *s, uint64_t now); /* as gp_seat_use() */
void gp_stats_request(struct device *d, uint64_t took_ns, uint64_t slo_ns, int has_ended); /* or expired */
enum gp_attempt gp_stats_attempt(const struct queue *q); /* what it was asked */
void gp_stats_failure(struct queue *q, int status);      /* of that */

/* runset.c: the policy's side */
int gp_runset_attach(struct device *d, const struct gp_policy_ops *ops, uint64_t now);
void gp_runset_free(struct device *d);
int gp_runset_seat_init(struct seat *s);
void gp_runset_enqueue(struct seat *s, uint64_t now);
void gp_runset_dequeue(struct seat *s, uint64_t now);
void gp_runset_changed(struct seat *s, uint64_t now);
void gp_runset_waits(struct seat *s, uint64_t now);
void gp_runset_stalled(struct device *d, uint64_t now);
void gp_runset_decide(struct device *d, uint64_t now);

/* act.c */
void gp_act_reconcile(struct device *d, uint64_t now);
void gp_act_queue(struct queue *q, uint64_t now);
void gp_act_settled(struct queue *q);
void gp_act_pay(struct seat *s, uint64_t now);
int gp_act_backs_off(const struct seat *s);           /* a stop of it failed: no more for now */
void gp_act_backed_off(struct seat *s, uint64_t now); /* its time is over */
void gp_act_pay_all(struct device *d, uint64_t now);
int gp_act_can_stop(const struct device *d);
int gp_act_is_stopping(const struct device *d); /* a stop is under way, or in line for it */
uint64_t gp_act_full_credit(const struct device *d);
uint32_t gp_act_mechanism(const struct device *d);

#endif
