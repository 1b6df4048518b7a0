// SPDX-License-Identifier: MIT
#include "policy/registry.h"

#include <stdio.h>
#include <string.h>

#define ADDRESS(name) &gp_policy_##name,
static const struct gp_policy_ops *const all[] = { GP_EACH_POLICY(ADDRESS) };

const struct gp_policy_ops *gp_policy_at(size_t i)
{
	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
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
	for (size_t i = 0; (ops = gp_policy_at(i)) && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", ops->name);
}
