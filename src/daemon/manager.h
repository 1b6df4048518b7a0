/* SPDX-License-Identifier: MIT */
/*
 * What gpreemptd is made of.  Each step of the loop takes in what came, from peers, alarms
 * and scans, and tells the core; at the step's end settle() has the core decide, and what
 * follows is sent, to all agents before any of them is waited for.
 */
#ifndef GP_DAEMON_MANAGER_H
#define GP_DAEMON_MANAGER_H

#include "base/listen.h"
#include "core/core.h"
#include "daemon/conf.h"
#include "daemon/decisions.h"
#include "daemon/loop.h"
#include "daemon/mounted.h"
#include "daemon/peer.h"
#include "daemon/scanner.h"
#include "daemon/sessions.h"
#include "daemon/settings.h"
#include "daemon/world.h"

#define GP_TURN_NS (1 * GP_S)            /* of a reservation */
#define GP_UNPARKABLE_NS (10 * GP_S)     /* a queue that a reservation could not stop is left alone for */
#define GP_PROXY_UNUSED_NS (5 * GP_S)    /* then a debugger lets its process go */
#define GP_MOST_TIMEOUT_NS (3600 * GP_S) /* of a drain */
#define GP_HELLO_NS (1 * GP_S)
#define GP_MOST_LEASE_NS (24 * 3600 * GP_S) /* of a hold */
#define GP_USUAL_PEERS 512                  /* all users' together; root's are besides */
#define GP_MOST_PEERS 4096                  /* the same, where the configuration says so */

/* A socket that we listen on. */
struct gp_door {
	struct gp_listen listen;
	struct gp_watch watch;
	uint32_t granted; /* the class of who comes through it; unknown: rules say */
	/* Of a class's: the folder that is mounted for those it is given to; or the mount namespace and the
	 * root folder of those in it. */
	struct gp_folder folder;
	uint64_t mount_ns, root[2];
	struct gp_manager *manager;
};

#define GP_DOORS 3 /* the first is everybody's, then one for each class */

struct gp_manager {
	struct gp_conf *conf;
	struct gp_loop loop;
	struct gp_door doors[GP_DOORS];
	struct gp_list attachments; /* doors in containers: attach.c */
	size_t nattachments;
	struct gp_list jobs; /* that were declared: jobs.c */
	size_t njobs;
	uint64_t jobs_declared; /* times that one was, from 1 on */
	struct gp_watch signals;
	int64_t group; /* gpreempt, or -1 */
	struct gp_accounts accounts;
	struct gp_list peers, dead, unclosed;
	size_t places, taken; /* for peers that are not root's */
	uint64_t last_peer;
	struct gp_world world;
	struct gp_events events;
	struct gp_core *core;
	struct gp_backend_ops ops;
	struct gp_backend *route; /* by which the core reaches queues */
	struct gp_alarm core_alarm;
	char policies[GP_MOST_DEVICES][GP_NAME_LEN]; /* as the configuration last had them */
	struct gp_reserve reserves[GP_MOST_DEVICES];
	size_t nreserves, nparked; /* how many are set, and of queues that one has stopped */
	bool reserves_changed;
	uint64_t reserves_ns; /* when they were last looked at */
	size_t debuggers;
	struct {
		uint64_t set, failed;
	} slices[GP_MOST_DEVICES]; /* times that queues were made to yield, or not to */
	uint64_t unreached;        /* a bit for each device that none of --ways reaches, as it was told */
	struct gp_sessions sessions;
	struct gp_settings settings;
	struct gp_alarm scan, judge, tell, heartbeat, reserve, reserve_turn, watchdog;
	struct gp_scanner scanner;
	uint64_t judged;      /* handle of the last client that was, since the scan */
	uint64_t scan_cpu_ns; /* that the scan has used, and what followed from it */
	bool ending;
	bool is_told;          /* why it cannot be opened */
	bool is_wary;          /* the last gpreemptd hung: fifo, until somebody says otherwise */
	bool policies_changed; /* since the activity of queues was last judged */
	bool found_none;       /* of GPUs, in the last scan */
};

/* manager.c */
int gp_manager_open(struct gp_manager *m, struct gp_conf *conf);
int gp_manager_run(struct gp_manager *m); /* until a signal ends it; everything is resumed then */
void gp_manager_close(struct gp_manager *m);
/* Takes fd; the peer is in the list, and not heard yet. */
int gp_manager_add_peer(struct gp_manager *m, int fd, struct gp_peer **ret);
void gp_judge_client(struct gp_manager *m, struct gp_client *c); /* with all its queues */
void gp_check_owner(struct gp_manager *m, struct gp_client *c); /* ends the holds of one that changed hands */

/* Whose socket listens: from now on it is heard. */
int gp_manager_open_door(struct gp_manager *m, struct gp_door *door);

/* attach.c: containers that ran before they were given a class */
void gp_attach_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_attach_again(struct gp_manager *m); /* those of the last gpreemptd */
void gp_attach_look(struct gp_manager *m);  /* for those that have ended */
void gp_attach_close(struct gp_manager *m); /* the next gpreemptd finds them */

/* jobs.c: whose processes are what somebody says who starts them */
void gp_jobs_declare(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_jobs_list(struct gp_manager *m, struct gp_peer *p, uint32_t serial);
void gp_jobs_find(struct gp_manager *m,
		  struct gp_client *c);         /* the one that it is of, if it was not looked for */
void gp_jobs_forget_sight(struct gp_client *c); /* it is to be looked for again */
void gp_jobs_client_gone(struct gp_manager *m, const struct gp_client *c);
void gp_jobs_request(struct gp_manager *m, uint64_t client, uint64_t latency_ns); /* has ended */
/* What is said of a client by its job. false: nothing. */
bool gp_job_verdict(const struct gp_client *c, struct gp_class_verdict *ret);
uint32_t gp_job_weight(const struct gp_client *c); /* 0: nobody says */
uint64_t gp_job_slo(const struct gp_client *c);    /* 0: none */
void gp_jobs_again(struct gp_manager *m);          /* those of the last gpreemptd */
void gp_jobs_look(struct gp_manager *m);           /* for those that have ended, or starve */
void gp_jobs_close(struct gp_manager *m);          /* the next gpreemptd finds them */

/* serve.c: what peers say */
void gp_serve_message(void *manager, struct gp_peer *p, const struct gp_msg *msg);
void gp_serve_gone(struct gp_manager *m, struct gp_peer *p);                                /* the peer */
void gp_serve_describe(struct gp_manager *m, struct gp_client *c, const struct gp_peer *p); /* by its HELLO */
void gp_judge(struct gp_manager *m, struct gp_queue *q);                                    /* its class */
/* How it would be judged now. */
void gp_verdict(const struct gp_manager *m, const struct gp_queue *q, struct gp_class_verdict *ret);
/* The same of a process, and of one of its queues, or NULL. */
void gp_verdict_of_client(const struct gp_manager *m, const struct gp_client *c,
			  const struct gp_found_queue *queue, struct gp_class_verdict *ret);

/* schedule.c: the world as the core sees it */
int gp_schedule_open(struct gp_manager *m);
void gp_schedule_close(struct gp_manager *m);
void gp_schedule_step(struct gp_manager *m);
void gp_schedule_devices(struct gp_manager *m);               /* those there are, with their policies */
void gp_schedule_caps(struct gp_manager *m, uint32_t device); /* what it can do has changed */
void gp_schedule_policy_chosen(struct gp_manager *m, uint32_t device, const char *text); /* by somebody */
void gp_schedule_reload(struct gp_manager *m); /* what the configuration says by now */
int gp_schedule_client(struct gp_manager *m, struct gp_client *c);
void gp_schedule_client_changed(struct gp_manager *m,
				struct gp_client *c); /* its class, weight or SLO may have */
/* An agent has come or gone: GP_EVENT_CLIENT, GP_EVENT_GONE. */
void gp_schedule_came_or_went(struct gp_manager *m, const struct gp_client *c, uint32_t kind);
void gp_schedule_activity(struct gp_manager *m, struct gp_queue *q);
void gp_schedule_client_gone(struct gp_manager *m, const struct gp_client *c);
/* The queue is there, or its device, its class or who can stop it may have changed. */
int gp_schedule_queue(struct gp_manager *m, struct gp_queue *q);
void gp_schedule_queue_gone(struct gp_manager *m, struct gp_queue *q);
void gp_schedule_reach(struct gp_manager *m, struct gp_client *c); /* all of its queues */
struct gp_core_queue_status gp_schedule_status(const struct gp_manager *m, const struct gp_queue *q);
void gp_schedule_end(struct gp_manager *m);           /* everything is to run */
bool gp_schedule_at_rest(const struct gp_manager *m); /* and does */

/* hints.c */
void gp_hint_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_hint_giver_gone(struct gp_manager *m, const struct gp_peer *p);

/* clients.c: what tools ask about clients and devices */
void gp_answer_done(struct gp_peer *p, uint32_t serial);
void gp_answer_clients(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_answer_more_clients(struct gp_manager *m, struct gp_peer *p);
void gp_answer_stats(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_answer_policy(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_answer_class(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
bool gp_may_order(const struct gp_peer *p); /* what others are */

/* request.c: HOLD and RELEASE, until their RESULT */
void gp_request_hold(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_request_release(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_request_ended(struct gp_queue *q, uint32_t goal, int status, uint64_t latency_ns);
void gp_request_close(struct gp_peer *p);
bool gp_may_act(const struct gp_manager *m, const struct gp_peer *p, struct gp_client *c);

/* reserve.c */
void gp_reserve_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg);
void gp_reserve_apply(struct gp_manager *m);
void gp_reserve_next(void *manager); /* turn */
void gp_reserve_again(void *manager);
uint64_t gp_reserve_due(const struct gp_manager *m); /* when changes may count */
void gp_reserve_park(struct gp_manager *m, struct gp_queue *q, bool is_parked);
void gp_reserve_failed(struct gp_manager *m, struct gp_queue *q); /* to stop it */

/* request.c: "user 1000, process 4711", without a process that has gone; empty: nobody holds it. */
const char *gp_holder_name(const struct gp_manager *m, const struct gp_queue *q, char *text, size_t size);

/* list.c */
void gp_answer_list(struct gp_manager *m, struct gp_peer *p, uint32_t serial);
void gp_answer_more(void *manager, struct gp_peer *p); /* of the list it has read so far */
void gp_answer_queue(const struct gp_manager *m, const struct gp_queue *q, bool with_ring,
		     struct gp_queue_info *ret);

/* proxy.c: a process of its own for each that is debugged */
/* *ret_why: what there is to say of an error, or NULL. */
int gp_proxy_need(struct gp_manager *m, struct gp_client *c, const char **ret_why);
void gp_proxy_failed(struct gp_manager *m, struct gp_client *c); /* to take it */
void gp_proxy_ended(struct gp_manager *m, const struct gp_peer *p);
void gp_proxy_used(struct gp_manager *m, struct gp_client *c); /* looks whether it still is */
void gp_proxy_end(struct gp_manager *m, struct gp_client *c);
void gp_proxy_unused(void *client);
void gp_proxy_reap(void);

#endif
