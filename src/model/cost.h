/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What it costs to take waves off the device and to bring them back. */
#ifndef GPM_COST_H
#define GPM_COST_H

#include "device.h"

gpm_u64 gpm_save_bytes(const struct gpm_device *dev, gpm_u64 waves);
/* Both are 0 for no waves: nothing is moved. */
gpm_u64 gpm_save_ns(const struct gpm_device *dev, gpm_u64 waves);
gpm_u64 gpm_restore_ns(const struct gpm_device *dev, gpm_u64 waves);

#endif
