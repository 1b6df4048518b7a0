/* SPDX-License-Identifier: MIT */
/* Every policy that is built in. A new one is gp_policy_NAME in a file of its own, and one line here. */
#ifndef GP_POLICY_REGISTRY_H
#define GP_POLICY_REGISTRY_H

#include <gpreempt/policy.h>

/* The names in the order they are shown. */
#define GP_EACH_POLICY(DO) \
	DO(fifo) \
	DO(priority) \
	DO(fair) \
	DO(deadline)

#define GP_DECLARE_POLICY(name) extern const struct gp_policy_ops gp_policy_##name;
GP_EACH_POLICY(GP_DECLARE_POLICY)
#undef GP_DECLARE_POLICY

/* One more, from elsewhere. -EEXIST: there is another of that name; -ENOSPC. Twice is once. */
int gp_policy_add(const struct gp_policy_ops *ops);
int gp_policy_is_built_in(const struct gp_policy_ops *ops);   /* the very table, not one of its name */
const struct gp_policy_ops *gp_policy_at(size_t i);           /* NULL: there are no more */
const struct gp_policy_ops *gp_policy_find(const char *name); /* NULL: none of that name */
/* All names as "a b c", cut to size. */
void gp_policy_names(char *list, size_t size);

#endif
