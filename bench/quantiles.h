/* SPDX-License-Identifier: MIT */
/* What a program of this folder says of the times it took. */
#ifndef GP_BENCH_QUANTILES_H
#define GP_BENCH_QUANTILES_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* "WHAT P50 P99 "; sorts them. */
static inline void print_quantiles(const char *what, uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	printf("%s %" PRIu64 " %" PRIu64 " ", what, values[n / 2], values[(n * 99 - 1) / 100]);
}

#endif
