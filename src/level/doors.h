/* SPDX-License-Identifier: MIT */
/* What the doors share: what the environment says of this process, and whether they are open. */
#ifndef GP_LEVEL_DOORS_H
#define GP_LEVEL_DOORS_H

#include <stdint.h>

enum gp_door { GP_DOOR_ROCR, GP_DOOR_CUDA, GP_DOOR_OPENCL, GP_DOORS };

/* GPREEMPT_LEVEL is "off": no door opens. */
int gp_doors_are_off(void);
/* What GPREEMPT_CLASS or AMD_QUEUE_TAG say now: enum gp_class. */
uint32_t gp_doors_class(void);
/* of levels, bits, those that GPREEMPT_LEVEL allows */
uint32_t gp_doors_levels(uint32_t levels);
/* What GPREEMPT_LEVEL_WAIT says is the engine's from now on; what is no such time counts as none. */
void gp_doors_set_wait(void);
/* why: NULL, it is open. */
void gp_doors_say(uint32_t door, const char *why);

/* The agent's, if it is in this process. */
uint64_t gp_doors_ring(void);
void gp_doors_rang(void);
/* Whether it has queues, which the driver can stop. */
int gp_doors_agent_has_queues(void);

#endif
