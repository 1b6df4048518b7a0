// SPDX-License-Identifier: MIT
#include "base/random.h"

static uint64_t mix(uint64_t z)
{
	/* The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable generators, 2014). */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void gp_random_init(struct gp_random *r, uint64_t seed, uint64_t stream)
{
	r->state = mix(mix(seed + 0x9e3779b97f4a7c15ull) ^ mix(~stream));
}

uint64_t gp_random_next(struct gp_random *r)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return mix(r->state);
}

uint64_t gp_random_between(struct gp_random *r, uint64_t low, uint64_t high)
{
	return low + (uint64_t)((gp_random_next(r) * ((unsigned __int128)(high - low) + 1)) >> 64);
}

/* log2(u) of a u in [1, 2), given as u << 63: 32 bits after the point, a bit for each squaring. */
static uint64_t log2_fraction(uint64_t u)
{
	uint64_t result = 0;

	for (int i = 0; i < 32; i++) {
		unsigned __int128 square = (unsigned __int128)u * u;

		result <<= 1;
		if (square >> 127) {
			result |= 1;
			u = (uint64_t)(square >> 64);
		} else {
			u = (uint64_t)(square >> 63);
		}
	}
	return result;
}

uint64_t gp_random_exponential(struct gp_random *r, uint64_t mean)
{
	/* -ln(U) = (64 - log2(u)) ln 2 for a 64-bit u; ln 2 in 32 bits after the point. */
	const uint64_t ln2 = 2977044472ull;
	uint64_t u = gp_random_next(r) | 1, log2;
	unsigned int top = 63 - (unsigned int)__builtin_clzll(u);

	log2 = ((uint64_t)top << 32) + log2_fraction(u << (63 - top));
	log2 = ((uint64_t)64 << 32) - log2;
	return (uint64_t)(((unsigned __int128)log2 * ln2 >> 32) * mean >> 32);
}
