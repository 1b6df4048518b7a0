/* SPDX-License-Identifier: MIT */
/* Numbers as people write them: 1.5ms, 50%, 0.25. Exact, no floating point. */
#ifndef GP_BASE_UNITS_H
#define GP_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/*
 * All of them: -EINVAL, not a number of that kind; -ERANGE, negative, too large,
 * or finer than the result can hold.  A time without a unit is -EDOM.
 */
int gp_time_parse(const char *text, uint64_t *ret_ns);
int gp_percent_parse(const char *text, uint64_t *ret_permille);
int gp_count_parse(const char *text, uint64_t *ret);
/* A decimal number times unit: "1.5" with 1000 is 1500. */
int gp_decimal_parse(const char *text, uint64_t unit, uint64_t *ret);

#define GP_TIME_UNITS 40
/* "ns, us, ms, s, min, m or h": what may stand behind a time. */
const char *gp_time_units(char text[GP_TIME_UNITS]);

#define GP_TIME_TEXT 32
/* In s or finer, the shortest text that gp_time_parse() reads back as ns. */
const char *gp_time_text(uint64_t ns, char text[GP_TIME_TEXT]);

#endif
