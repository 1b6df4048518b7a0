/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The model's own integers, so that it compiles without a libc and inside a kernel. */
#ifndef GPM_TYPES_H
#define GPM_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

typedef uint32_t gpm_u32;
typedef uint64_t gpm_u64;

#define GPM_NEVER (~(gpm_u64)0)

static inline gpm_u64 gpm_min(gpm_u64 a, gpm_u64 b)
{
	return a < b ? a : b;
}

static inline gpm_u64 gpm_max(gpm_u64 a, gpm_u64 b)
{
	return a > b ? a : b;
}

#endif
