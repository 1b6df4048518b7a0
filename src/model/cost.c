// SPDX-License-Identifier: MIT OR GPL-2.0
#include "cost.h"

gpm_u64 gpm_save_bytes(const struct gpm_device *dev, gpm_u64 waves)
{
	return waves * dev->save_bytes_per_wave;
}

static gpm_u64 move_ns(const struct gpm_device *dev, gpm_u64 waves)
{
	return gpm_save_bytes(dev, waves) * 1000 / dev->save_bytes_per_us;
}

gpm_u64 gpm_save_ns(const struct gpm_device *dev, gpm_u64 waves)
{
	return waves ? dev->save_fixed_ns + move_ns(dev, waves) : 0;
}

gpm_u64 gpm_restore_ns(const struct gpm_device *dev, gpm_u64 waves)
{
	return waves ? dev->restore_fixed_ns + move_ns(dev, waves) : 0;
}
