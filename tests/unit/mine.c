// SPDX-License-Identifier: MIT
/* A policy's file, right or wrong as it is built: see tests/meson.build. */
#include <gpreempt/policy.h>

#ifndef SIZE
#define SIZE sizeof(struct gp_policy_ops)
#endif
#ifndef ABI
#define ABI GP_POLICY_ABI
#endif
#ifndef NAME
#define NAME "mine"
#endif
#ifndef TABLE
#define TABLE gp_policy
#endif

#ifdef HANGS
static uint64_t never_return(struct gp_policy *p, uint64_t now)
{
	(void)p;
	while (1)
		now++;
	return now;
}
#define DECIDE never_return
#else
#define DECIDE NULL
#endif

extern const struct gp_policy_ops TABLE;
const struct gp_policy_ops TABLE = { .size = SIZE, .abi = ABI, .name = NAME, .decide = DECIDE };
