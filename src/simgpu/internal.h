/* SPDX-License-Identifier: MIT */
/* What the client's two halves share: one loop has the load (client.c) and the agent (agent.c). */
#ifndef GP_SIMGPU_INTERNAL_H
#define GP_SIMGPU_INTERNAL_H

#include "machine/load.h"
#include "simgpu/client.h"
#include "simgpu/conn.h"
#include "simgpu/proto.h"

struct gp_simqueue {
	uint64_t first, next;                     /* tags: of the oldest open request, of the next one */
	uint64_t arrival_ns[GP_SIMGPU_MOST_OPEN]; /* of the open ones, by tag */
	uint32_t hinted[GP_SIMGPU_MOST_OPEN];     /* the welcome after which they were hinted; 0: not */
	uint32_t want;                            /* what the device was last asked for */
	uint32_t is_stopped;
	uint64_t stops, stopped_since_ns, stopped_ns;
	uint32_t activity; /* as gpreemptd was told */
	/* A stop that waits for the queue to run empty. */
	uint32_t is_draining, drain_serial;
	uint64_t drain_start_ns, drain_end_ns;
};

struct gp_simagent {
	struct gp_simconn conn;
	uint32_t is_welcome, samples, has_complained;
	uint32_t told_class; /* what it is, as far as was said: at first what it asked for */
	uint64_t ask_ns;     /* when it asks gpreemptd again */
	uint32_t welcomes;   /* so far: hints end with the connection that they were given on */
	uint64_t lease_ns, heard_ns;
};

struct gp_simclient {
	struct gp_simclient_opts opts;
	struct gp_simclient_figures *figures;
	struct gp_device_info device;
	uint64_t device_key[2];
	uint64_t epoch_ns;
	int gpu; /* connected */
	struct gp_simqueue queues[GP_SIMGPU_MOST_QUEUES];
	uint32_t next_queue;
	struct gp_group group;
	struct gp_load load;
	uint64_t start_ns, arrival_ns;
	struct gp_simagent agent;
};

/* client.c. 0, or the device is lost. */
int gp_simclient_ask(struct gp_simclient *c, uint32_t serial, const struct gp_simgpu_want *wants, uint32_t n);

/* agent.c. An error of theirs is the device's: gpreemptd may come and go. */
void gp_simagent_init(struct gp_simclient *c);
int gp_simagent_turn(struct gp_simclient *c, uint64_t now_ns);
uint64_t gp_simagent_next_ns(const struct gp_simclient *c); /* when the next turn is due at the latest */
int gp_simagent_receive(struct gp_simclient *c, uint64_t now_ns);
int gp_simagent_applied(struct gp_simclient *c, const struct gp_simgpu_msg *msg);
/* The queue may have become busy or idle. */
int gp_simagent_look(struct gp_simclient *c, uint32_t queue);
/* A request is about to be submitted, or was done. */
int gp_simagent_hint_begin(struct gp_simclient *c, uint32_t queue, uint64_t tag);
int gp_simagent_hint_end(struct gp_simclient *c, uint32_t queue, uint64_t tag);
void gp_simagent_close(struct gp_simclient *c);

static inline int gp_simqueue_is_busy(const struct gp_simqueue *q)
{
	return q->first != q->next;
}

#endif
