// SPDX-License-Identifier: MIT
/*
 * First come, first served; nobody is ever stopped for anybody else.  This is what
 * the core does for a policy that says nothing, and what goes on when another policy
 * is ejected.
 */
#include <gpreempt/policy.h>

const struct gp_policy_ops gp_policy_fifo = {
	.size = sizeof(gp_policy_fifo),
	.abi = GP_POLICY_ABI,
	.name = "fifo",
};
