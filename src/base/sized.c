// SPDX-License-Identifier: MIT
#include "base/sized.h"

#include <errno.h>
#include <string.h>

int gp_sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size)
{
	const unsigned char *tail = src;
	size_t known = src_size < dst_size ? src_size : dst_size;

	if (src_size < sizeof(size_t))
		return -EINVAL;
	for (size_t i = known; i < src_size; i++)
		if (tail[i])
			return -E2BIG;
	memcpy(dst, src, known);
	memset((unsigned char *)dst + known, 0, dst_size - known);
	return 0;
}

void gp_sized_fill(void *dst, size_t dst_size, const void *src, size_t src_size)
{
	size_t known = src_size < dst_size ? src_size : dst_size;

	memcpy(dst, src, known);
	memset((unsigned char *)dst + known, 0, dst_size - known);
}
