// SPDX-License-Identifier: MIT
#include "base/hist.h"

#define SUB (1u << GP_HIST_SUB_BITS)

/* Values under 256 have a bucket each; above, the top nine bits choose it. */
static size_t bucket_of(uint64_t value)
{
	unsigned int shift;

	if (value < SUB)
		return (size_t)value;
	shift = 63 - (unsigned int)__builtin_clzll(value) - GP_HIST_SUB_BITS;
	return ((size_t)(shift + 1) << GP_HIST_SUB_BITS) + (size_t)((value >> shift) - SUB);
}

void gp_hist_bounds(size_t i, uint64_t *ret_low, uint64_t *ret_high)
{
	size_t shift = i >> GP_HIST_SUB_BITS;

	if (shift)
		shift--;
	*ret_low = i < SUB ? i : (uint64_t)(SUB + (i & (SUB - 1))) << shift;
	*ret_high = *ret_low + ((uint64_t)1 << shift) - 1;
}

void gp_hist_add(struct gp_hist *h, uint64_t value)
{
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
	h->bucket[bucket_of(value)]++;
}

void gp_hist_merge(struct gp_hist *h, const struct gp_hist *other)
{
	if (!other->count)
		return;
	if (!h->count || other->min < h->min)
		h->min = other->min;
	if (other->max > h->max)
		h->max = other->max;
	h->count += other->count;
	h->sum += other->sum;
	for (size_t i = 0; i < GP_HIST_BUCKETS; i++)
		h->bucket[i] += other->bucket[i];
}

uint64_t gp_hist_quantile(const struct gp_hist *h, uint32_t permyriad)
{
	/* The rank is rounded up: p99 of 100 values is the 99th. */
	uint64_t rank = (h->count * permyriad + 9999) / 10000, seen = 0, low, high;

	if (!h->count)
		return 0;
	for (size_t i = 0; i < GP_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen < rank || !seen)
			continue;
		gp_hist_bounds(i, &low, &high);
		return high < h->max ? high : h->max;
	}
	return h->max;
}

uint64_t gp_hist_mean(const struct gp_hist *h)
{
	return h->count ? h->sum / h->count : 0;
}

uint64_t gp_hist_at_most(const struct gp_hist *h, uint64_t value)
{
	uint64_t n = 0;

	if (value >= h->max)
		return h->count;
	for (size_t i = 0; i <= bucket_of(value); i++)
		n += h->bucket[i];
	return n;
}

void gp_hist_decades(const struct gp_hist *h, uint64_t *ret_at_most, size_t n)
{
	uint64_t seen = 0;
	size_t bucket = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t bound = gp_hist_decade_ns(i);

		for (; bound < h->max && bucket <= bucket_of(bound); bucket++)
			seen += h->bucket[bucket];
		ret_at_most[i] = bound < h->max ? seen : h->count;
	}
}

uint64_t gp_hist_decade_ns(size_t i)
{
	static const uint64_t step[] = { 1, 2, 5 };
	uint64_t bound = 10000 * step[i % 3];

	for (; i >= 3; i -= 3)
		bound *= 10;
	return bound;
}
