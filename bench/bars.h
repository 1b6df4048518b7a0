/* SPDX-License-Identifier: MIT */
/* Figures beside the bars they are to keep, as a table and as JSON. */
#ifndef GP_BENCH_BARS_H
#define GP_BENCH_BARS_H

#include "base/hist.h"

struct json_object;

struct bars {
	const char *bench;
	struct json_object *json;
	int missed;
};

void bars_open(struct bars *b, const char *bench);
void bars_parameter(struct bars *b, const char *name, uint64_t value);
/* To be at most bar, or at least. */
void bars_at_most(struct bars *b, const char *what, double value, const char *unit, double bar);
void bars_at_least(struct bars *b, const char *what, double value, const char *unit, double bar);
void bars_figure(struct bars *b, const char *what, double value, const char *unit); /* without a bar */
void bars_latency(struct bars *b, const char *what, const struct gp_hist *h);       /* p50, p99 and all */
/* Writes the file, if there is one. What main() returns: 1 if a bar was missed. */
int bars_close(struct bars *b, const char *file);

#endif
