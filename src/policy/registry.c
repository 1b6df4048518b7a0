// SPDX-License-Identifier: MIT
#include "policy/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS(name) &gp_policy_##name,
static const struct gp_policy_ops *const all[] = { GP_EACH_POLICY(ADDRESS) };

#define BUILT_IN (sizeof(all) / sizeof(all[0]))
#define MOST_ADDED 8

static const struct gp_policy_ops *added[MOST_ADDED];
static size_t nadded;

int gp_policy_add(const struct gp_policy_ops *ops)
{
	const struct gp_policy_ops *same = gp_policy_find(ops->name);

	if (same)
		return same == ops ? 0 : -EEXIST;
	if (nadded == MOST_ADDED)
		return -ENOSPC;
	added[nadded++] = ops;
	return 0;
}

int gp_policy_is_built_in(const struct gp_policy_ops *ops)
{
	for (size_t i = 0; i < BUILT_IN; i++)
		if (all[i] == ops)
			return 1;
	return 0;
}

const struct gp_policy_ops *gp_policy_at(size_t i)
{
	if (i < BUILT_IN)
		return all[i];
	return i - BUILT_IN < nadded ? added[i - BUILT_IN] : NULL;
}

const struct gp_policy_ops *gp_policy_find(const char *name)
{
	const struct gp_policy_ops *ops;

	for (size_t i = 0; (ops = gp_policy_at(i)); i++)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}

void gp_policy_names(char *list, size_t size)
{
	const struct gp_policy_ops *ops;
	size_t used = 0;

	list[0] = '\0';
	for (size_t i = 0; (ops = gp_policy_at(i)); i++) {
		if (used + (i != 0) + strlen(ops->name) >= size)
			return; /* half a name is another one's */
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", ops->name);
	}
}
