/* SPDX-License-Identifier: MIT */
/*
 * The offline clients that a policy owns: all run, none does, or they take turns.
 * For policies that differ only in when offline has to leave.
 */
#ifndef GP_POLICY_OFFLINE_H
#define GP_POLICY_OFFLINE_H

#include <gpreempt/policy.h>

/* A policy's memory of a client begins with this. */
struct gp_offline_link {
	struct gp_offline_link *next, *prev;
	struct gp_policy_client *client;
	uint64_t late_ns; /* so much too long was its last turn */
};

struct gp_offline {
	struct gp_offline_link running;
	struct gp_offline_link waiting; /* in the order they stopped */
	uint64_t turn_end_ns;
};

void gp_offline_init(struct gp_offline *o);
void gp_offline_add(struct gp_offline *o, struct gp_policy_client *c);
void gp_offline_remove(struct gp_policy_client *c);

void gp_offline_stop_all(struct gp_policy *p, struct gp_offline *o);
/* As many as the device's limits allow. Returns when the next turn is due. */
uint64_t gp_offline_run(struct gp_policy *p, struct gp_offline *o, int online_active, uint64_t now_ns);

#endif
