/* SPDX-License-Identifier: MIT */
/* What a process says of itself, in its environment. */
#ifndef GP_WIRE_ENVIRONMENT_H
#define GP_WIRE_ENVIRONMENT_H

#include "wire/wire.h"

#define GP_TAG_LEN 64 /* as in struct gp_msg_hello */

struct gp_claim {
	char tag[GP_TAG_LEN];
	uint32_t seen;   /* enum gp_class */
	uint32_t weight; /* 0: it does not say */
	uint64_t slo_ns; /* 0: none */
};

typedef char *gp_getenv(const char *name); /* getenv(), or secure_getenv() */

/* As the environment is now. What cannot be understood is as if it were not there. */
void gp_environment_claim(gp_getenv *get, struct gp_claim *ret);
int gp_environment_priority(void); /* 0 to 15, or -1 */
void gp_claim_put(struct gp_msg_hello *hello, const struct gp_claim *who);

#endif
