/* SPDX-License-Identifier: MIT */
/* Structs that cross a boundary carry their size; what we do not know must be zero. */
#ifndef GP_BASE_SIZED_H
#define GP_BASE_SIZED_H

#include <stddef.h>

/*
 * Copies a caller's struct of src_size bytes into ours: what it does not have
 * becomes zero.  -EINVAL: no size; -E2BIG: it uses something newer than we are.
 */
int gp_sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size);

/* The other way, for results: fills at most the caller's dst_size bytes. */
void gp_sized_fill(void *dst, size_t dst_size, const void *src, size_t src_size);

#endif
