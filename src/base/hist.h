/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of 64-bit values: 256 buckets for each power of two, so
 * a percentile is at most 1/256 too high.  Adding is O(1) and never allocates.
 */
#ifndef GP_BASE_HIST_H
#define GP_BASE_HIST_H

#include <stddef.h>
#include <stdint.h>

#define GP_HIST_SUB_BITS 8
#define GP_HIST_BUCKETS ((64 - GP_HIST_SUB_BITS + 1) << GP_HIST_SUB_BITS)

struct gp_hist {
	uint64_t count;
	uint64_t sum;
	uint64_t min; /* of an empty one: 0 */
	uint64_t max;
	uint64_t bucket[GP_HIST_BUCKETS];
};

void gp_hist_add(struct gp_hist *h, uint64_t value);
void gp_hist_merge(struct gp_hist *h, const struct gp_hist *other); /* as if its values had been added */
/* The value that permyriad/10000 of the counts do not exceed (9900: p99); 0 if empty. */
uint64_t gp_hist_quantile(const struct gp_hist *h, uint32_t permyriad);
uint64_t gp_hist_mean(const struct gp_hist *h);
/* How many values were at most value, to the bucket's precision. */
uint64_t gp_hist_at_most(const struct gp_hist *h, uint64_t value);
/* Bounds for people: 10 us, 20 us, 50 us, 100 us and so on, for values that are ns. */
uint64_t gp_hist_decade_ns(size_t i);
/* gp_hist_at_most() of the first n of them, in one go. */
void gp_hist_decades(const struct gp_hist *h, uint64_t *ret_at_most, size_t n);
/* Bounds of bucket i, both included. */
void gp_hist_bounds(size_t i, uint64_t *ret_low, uint64_t *ret_high);

#endif
