// SPDX-License-Identifier: MIT
#include "ini/keys.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/registry.h"
#include "base/units.h"
#include "ini/words.h"

#define WRITTEN 96 /* bytes of a setting's text */

int gp_complain_unknown(const struct gp_place *at, const char *what, const char *word, const char *list)
{
	char near[64];

	if (gp_word_near(list, word, near, sizeof(near)))
		return gp_complain(at, "unknown %s \"%s\"; did you mean %s?", what, word, near);
	return gp_complain(at, "unknown %s \"%.32s\"; known are: %s", what, word, list);
}

void gp_keys_list(const struct gp_key *keys, size_t n, char *list, size_t size)
{
	size_t used = 0;

	list[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", keys[i].name);
}

/* A setting as one would write it: in a file, or as an option. */
static const char *written(const struct gp_key *key, const struct gp_place *at, const char *value,
			   char text[WRITTEN])
{
	snprintf(text, WRITTEN, "%s%s%.40s", at->is_option ? at->file : key->name,
		 at->is_option ? " " : " = ", value);
	return text;
}

/* What is wrong with the setting, which stands before it. */
__attribute__((format(printf, 4, 5))) static int complain(const struct gp_key *key, const struct gp_place *at,
							  const char *value, const char *fmt, ...)
{
	struct gp_place where = *at;
	char text[192], setting[WRITTEN];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (at->is_option)
		where.file = NULL;
	return gp_complain(&where, "%s %s", written(key, at, value, setting), text);
}

static int complain_kind(const struct gp_key *key, const struct gp_place *at, const char *value,
			 const char *kind)
{
	char example[WRITTEN];

	return complain(key, at, value, "is not %s; write it as in: %s", kind,
			written(key, at, key->example, example));
}

int gp_set_count(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	uint64_t n;

	if (gp_count_parse(value, &n) < 0 || n < key->min || n > key->max)
		return complain(key, at, value,
				"is not possible; write a whole number from %" PRIu64 " to %" PRIu64,
				key->min, key->max);
	*(uint64_t *)field = n;
	return 0;
}

static int complain_time(const struct gp_key *key, const struct gp_place *at, const char *value)
{
	char min[GP_TIME_TEXT], max[GP_TIME_TEXT], example[WRITTEN];

	return complain(key, at, value, "is not possible; write a time from %s to %s, as in: %s",
			gp_time_text(key->min, min), gp_time_text(key->max, max),
			written(key, at, key->example, example));
}

int gp_set_time(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char example[WRITTEN], units[GP_TIME_UNITS];
	uint64_t ns;
	int r;

	if (key->word && !strcmp(value, key->word)) {
		*(uint64_t *)field = key->word_value;
		return 0;
	}
	r = gp_time_parse(value, &ns);
	if (r == -EDOM)
		return complain(key, at, value, "has no unit; write %s behind it, as in: %s",
				gp_time_units(units), written(key, at, key->example, example));
	if (r == -EINVAL)
		return complain_kind(key, at, value, "a time");
	if (r < 0 || ns < key->min || ns > key->max)
		return complain_time(key, at, value);
	*(uint64_t *)field = ns;
	return 0;
}

int gp_set_rate(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char example[WRITTEN];
	uint64_t milli;
	int r;

	r = gp_decimal_parse(value, 1000, &milli);
	if (r == -EINVAL)
		return complain_kind(key, at, value, "a number of requests per second");
	if (value[0] == '-' || (r == 0 && milli == 0))
		return gp_complain(at, "%s must be more than 0, as in: %s", at->is_option ? "it" : key->name,
				   written(key, at, key->example, example));
	if (r < 0 || milli < key->min || milli > key->max)
		return complain(key, at, value,
				"is not possible; write a number from 0.001 to %" PRIu64
				" with at most three decimals, as in: %s",
				key->max / 1000, written(key, at, key->example, example));
	*(uint64_t *)field = milli;
	return 0;
}

int gp_set_percent(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char example[WRITTEN];
	uint64_t permille;
	int r;

	r = gp_percent_parse(value, &permille);
	if (r == -EINVAL)
		return complain_kind(key, at, value, "a percentage");
	if (r < 0 || permille < key->min || permille > key->max)
		return complain(key, at, value,
				"is not possible; write a percentage from 0.1%% to %" PRIu64 "%%, as in: %s",
				key->max / 10, written(key, at, key->example, example));
	*(uint64_t *)field = permille;
	return 0;
}

int gp_set_share(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char example[WRITTEN];
	uint64_t permille;

	if (gp_decimal_parse(value, 1000, &permille) < 0 || permille < key->min || permille > key->max)
		return complain(key, at, value,
				"is not possible; write the part of the GPU that it fills, from 0.001 to 1, "
				"as in: %s",
				written(key, at, key->example, example));
	*(uint64_t *)field = permille;
	return 0;
}

int gp_set_yes(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	int i = gp_word_find("no yes", value);

	if (i < 0)
		return complain(key, at, value, "is not possible; write yes or no");
	*(uint64_t *)field = (uint64_t)i;
	return 0;
}

int gp_set_choice(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	int i = gp_word_find(key->choices, value);

	if (i < 0)
		return gp_complain_unknown(at, key->name, value, key->choices);
	*(uint32_t *)field = (uint32_t)i;
	return 0;
}

int gp_set_text(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char example[WRITTEN];
	size_t len = strlen(value);

	if (!len)
		return gp_complain(at, "%s is empty; write it as in: %s", key->name,
				   written(key, at, key->example, example));
	if (len >= key->size)
		return gp_complain(at, "%s is too long; keep it under %zu characters", key->name, key->size);
	(void)gp_text_copy(field, key->size, value, len);
	return 0;
}

int gp_set_policy(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	char known[128];

	gp_policy_names(known, sizeof(known));
	if (!gp_policy_find(value))
		return gp_complain_unknown(at, key->name, value, known);
	return gp_set_text(key, at, value, field);
}

int gp_set_name(const struct gp_key *key, const struct gp_place *at, const char *value, void *field)
{
	for (const char *c = value; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return gp_complain(at,
					   "%s \"%.40s\" is not a name; use letters, digits, - _ and . only",
					   key->name, value);
	return gp_set_text(key, at, value, field);
}
