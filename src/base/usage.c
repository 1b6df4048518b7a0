// SPDX-License-Identifier: MIT
#include "base/usage.h"

#include <string.h>

#define SECOND 1000000000ull

/* Forgets the seconds that are too long ago. */
static void enter_second(struct gp_usage *u, uint64_t second)
{
	if (second - u->second >= GP_USAGE_SECONDS)
		memset(u->on_ns, 0, sizeof(u->on_ns));
	else
		while (u->second < second)
			u->on_ns[++u->second % GP_USAGE_SECONDS] = 0;
	u->second = second;
}

static void count(struct gp_usage *u, uint64_t now_ns)
{
	uint64_t from = u->until_ns, end;

	if (u->is_on && now_ns - from > GP_USAGE_SECONDS * SECOND)
		from = now_ns - GP_USAGE_SECONDS * SECOND;
	for (; u->is_on && from < now_ns; from = end) {
		end = (from / SECOND + 1) * SECOND;
		end = end < now_ns ? end : now_ns;
		enter_second(u, from / SECOND);
		u->on_ns[u->second % GP_USAGE_SECONDS] += end - from;
	}
	enter_second(u, now_ns / SECOND);
	u->until_ns = now_ns;
}

void gp_usage_set(struct gp_usage *u, int is_on, uint64_t now_ns)
{
	count(u, now_ns);
	u->is_on = is_on != 0;
}

/* Of nine whole seconds and the one that has begun. */
uint32_t gp_usage_permille(struct gp_usage *u, uint64_t now_ns)
{
	uint64_t sum = 0, span = (GP_USAGE_SECONDS - 1) * SECOND + now_ns % SECOND;

	count(u, now_ns);
	for (uint32_t i = 0; i < GP_USAGE_SECONDS; i++)
		sum += u->on_ns[i];
	return (uint32_t)(sum * 1000 / span);
}
