// SPDX-License-Identifier: MIT
#include "wire/environment.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define MOST_WEIGHT 10000
#define MOST_SLO (3600 * GP_S)

static const char *variable(gp_getenv *get, const char *name)
{
	const char *value = get(name);

	return value ? value : "";
}

/* Digits from the start of text; -1: there are none, or they say more than most. */
static int64_t read_number(const char *text, int64_t most, const char **ret_end)
{
	int64_t value = 0;

	*ret_end = text;
	for (; **ret_end >= '0' && **ret_end <= '9'; (*ret_end)++)
		if (value <= most)
			value = value * 10 + (**ret_end - '0');
	return *ret_end == text || value > most ? -1 : value;
}

int gp_environment_priority(void)
{
	const char *end;
	int64_t value = read_number(variable(getenv, "AMD_QUEUE_PRIORITY"), 15, &end);

	return *end ? -1 : (int)value;
}

static uint32_t wanted_class(gp_getenv *get, const char *tag)
{
	const char *word = variable(get, "GPREEMPT_CLASS");

	if (!strcmp(word, "online") || (!*word && !strcmp(tag, "ONLINE_AI")))
		return GP_CLASS_ONLINE;
	if (!strcmp(word, "offline") || (!*word && !strcmp(tag, "OFFLINE_AI")))
		return GP_CLASS_OFFLINE;
	return GP_CLASS_UNKNOWN;
}

static uint32_t wanted_weight(gp_getenv *get)
{
	const char *end;
	int64_t value = read_number(variable(get, "GPREEMPT_WEIGHT"), MOST_WEIGHT, &end);

	return value > 0 && !*end ? (uint32_t)value : 0;
}

/* As --slo takes it; without a unit it is ns, as gpreempt run sets it. */
static uint64_t wanted_slo(gp_getenv *get)
{
	const char *text = variable(get, "GPREEMPT_SLO");
	uint64_t ns = 0;
	int r = gp_time_parse(text, &ns);

	if (r == -EDOM)
		r = gp_count_parse(text, &ns);
	return r < 0 || ns > MOST_SLO ? 0 : ns;
}

void gp_environment_claim(gp_getenv *get, struct gp_claim *ret)
{
	const char *tag = variable(get, "AMD_QUEUE_TAG");

	*ret = (struct gp_claim){ .seen = wanted_class(get, tag),
				  .weight = wanted_weight(get),
				  .slo_ns = wanted_slo(get) };
	(void)snprintf(ret->tag, sizeof(ret->tag), "%s", tag);
}

void gp_claim_put(struct gp_msg_hello *hello, const struct gp_claim *who)
{
	memcpy(hello->tag, who->tag, sizeof(hello->tag));
	hello->seen = who->seen;
	hello->weight = who->weight;
	hello->slo_ns = who->slo_ns;
}
