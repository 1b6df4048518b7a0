// SPDX-License-Identifier: MIT
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	uint64_t ns;
} time_units[] = { { "h", 3600 * GP_S }, { "m", 60 * GP_S }, { "min", 60 * GP_S }, { "s", GP_S },
		   { "ms", GP_MS },      { "us", GP_US },    { "ns", 1 } };

#define LARGEST_SHOWN 3 /* s: a part of a larger one may have no end behind the dot */

static int add_scaled(uint64_t *value, uint64_t digit, uint64_t place)
{
	uint64_t part;

	if (__builtin_mul_overflow(digit, place, &part) || __builtin_add_overflow(*value, part, value))
		return -ERANGE;
	return 0;
}

/* The digits behind the dot; place is what the last digit before it was worth. */
static int parse_fraction(const char *text, size_t len, uint64_t place, uint64_t *value)
{
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -EINVAL;
		if ((place % 10 || !place) && text[i] != '0')
			return -ERANGE;
		place /= 10;
		if (add_scaled(value, (uint64_t)(text[i] - '0'), place) < 0)
			return -ERANGE;
	}
	return len ? 0 : -EINVAL;
}

static int parse_scaled(const char *text, size_t len, uint64_t unit, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i;
	int r;

	for (i = 0; i < len && isdigit((unsigned char)text[i]); i++) {
		if (__builtin_mul_overflow(value, 10ull, &value) ||
		    add_scaled(&value, (uint64_t)(text[i] - '0'), unit) < 0)
			return -ERANGE;
	}
	if (!i)
		return -EINVAL;
	if (i < len) {
		if (text[i] != '.')
			return -EINVAL;
		r = parse_fraction(text + i + 1, len - i - 1, unit, &value);
		if (r < 0)
			return r;
	}
	*ret = value;
	return 0;
}

static bool negative(const char *text)
{
	return text[0] == '-' && (isdigit((unsigned char)text[1]) || text[1] == '.');
}

int gp_decimal_parse(const char *text, uint64_t unit, uint64_t *ret)
{
	if (negative(text))
		return -ERANGE;
	return parse_scaled(text, strlen(text), unit, ret);
}

int gp_count_parse(const char *text, uint64_t *ret)
{
	if (strchr(text, '.'))
		return -EINVAL;
	return gp_decimal_parse(text, 1, ret);
}

int gp_percent_parse(const char *text, uint64_t *ret_permille)
{
	size_t len = strlen(text);

	if (!len || text[len - 1] != '%')
		return -EINVAL;
	if (negative(text))
		return -ERANGE;
	for (len--; len && text[len - 1] == ' '; len--)
		;
	return parse_scaled(text, len, 10, ret_permille);
}

int gp_time_parse(const char *text, uint64_t *ret_ns)
{
	const char *number = negative(text) ? text + 1 : text;
	size_t len = strspn(number, "0123456789.");
	const char *unit = number + len;

	if (!len)
		return -EINVAL;
	unit += strspn(unit, " ");
	if (!*unit)
		return -EDOM;
	for (size_t i = 0; i < sizeof(time_units) / sizeof(time_units[0]); i++) {
		if (!strcmp(unit, time_units[i].name))
			return number == text ? parse_scaled(text, len, time_units[i].ns, ret_ns) : -ERANGE;
	}
	return -EINVAL;
}

const char *gp_time_units(char text[GP_TIME_UNITS])
{
	size_t used = 0;

	for (size_t i = sizeof(time_units) / sizeof(time_units[0]); i-- > 0;)
		used += (size_t)snprintf(text + used, GP_TIME_UNITS - used, "%s%s", time_units[i].name,
					 i > 1 ? ", "
					 : i   ? " or "
					       : "");
	return text;
}

const char *gp_time_text(uint64_t ns, char text[GP_TIME_TEXT])
{
	const size_t finest = sizeof(time_units) / sizeof(time_units[0]) - 1;
	uint64_t rest, place;
	size_t i, len;

	for (i = LARGEST_SHOWN; i < finest && ns < time_units[i].ns; i++)
		;
	place = time_units[i].ns;
	len = (size_t)snprintf(text, GP_TIME_TEXT, "%" PRIu64, ns / place);
	rest = ns % place;
	if (rest)
		text[len++] = '.';
	while (rest) {
		place /= 10;
		text[len++] = (char)('0' + rest / place);
		rest %= place;
	}
	snprintf(text + len, GP_TIME_TEXT - len, "%s", time_units[i].name);
	return text;
}
