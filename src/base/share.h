/* SPDX-License-Identifier: MIT */
/* A reservation of a device's queue slots: one meaning for the daemon, the simulator and the library. */
#ifndef GP_BASE_SHARE_H
#define GP_BASE_SHARE_H

#include <stdint.h>

/*
 * How many offline queues may be active at a time: offline_percent of the slots, rounded down, so 0 of them
 * for 0 percent; UINT32_MAX, no limit, if both shares are 0.  -EINVAL: over 100 percent together;
 * -ENOTSUP: there are no slots to share.
 */
int gp_share_limit(uint32_t slots, uint32_t online_percent, uint32_t offline_percent, uint32_t *ret_limit);

#endif
