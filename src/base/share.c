// SPDX-License-Identifier: MIT
#include "base/share.h"

#include <errno.h>

int gp_share_limit(uint32_t slots, uint32_t online_percent, uint32_t offline_percent, uint32_t *ret_limit)
{
	if ((uint64_t)online_percent + offline_percent > 100)
		return -EINVAL;
	if (!slots)
		return -ENOTSUP;
	*ret_limit = online_percent || offline_percent ? (uint32_t)((uint64_t)slots * offline_percent / 100)
						       : UINT32_MAX;
	return 0;
}
