// SPDX-License-Identifier: MIT OR GPL-2.0
#include "device.h"

static const char *check_ranges(const struct gpm_device *dev)
{
#define GPM_RANGE(key, min, max) \
	if (dev->key + 1 < (gpm_u64)(min) + 1 || dev->key > (gpm_u64)(max)) \
		return #key " must be from " #min " to " #max;
	GPM_DEVICE_KEYS(GPM_RANGE)
#undef GPM_RANGE
	return NULL;
}

static const char *check_calls(const struct gpm_device *dev)
{
	if (dev->stop_call_min_ns > dev->stop_call_max_ns)
		return "stop_call_min_ns must not be more than stop_call_max_ns";
	if (dev->resume_call_min_ns > dev->resume_call_max_ns)
		return "resume_call_min_ns must not be more than resume_call_max_ns";
	if (dev->slice_call_min_ns > dev->slice_call_max_ns)
		return "slice_call_min_ns must not be more than slice_call_max_ns";
	return NULL;
}

static const char *check_sharing(const struct gpm_device *dev)
{
	if (dev->sharing == GPM_CONCURRENT && !dev->queue_slots)
		return "queue_slots must be 1 or more when sharing is concurrent";
	if (dev->sharing == GPM_CONCURRENT && (dev->slice_ns || dev->yield_slice_ns || dev->switch_ns))
		return "slice_ns, yield_slice_ns and switch_ns must be 0 when sharing is concurrent";
	if (dev->sharing == GPM_CONCURRENT)
		return NULL;
	if (dev->queue_slots)
		return "queue_slots must be 0 when sharing is timeslice: there are no hardware slots to fill";
	if (!dev->slice_ns || !dev->yield_slice_ns)
		return "slice_ns and yield_slice_ns must be 1 or more when sharing is timeslice";
	if (dev->yield_slice_ns > dev->slice_ns)
		return "yield_slice_ns must not be more than slice_ns: a yielding client would hold on longer";
	return NULL;
}

const char *gpm_device_check(const struct gpm_device *dev)
{
	const char *why = check_ranges(dev);

	if (!why)
		why = check_calls(dev);
	return why ? why : check_sharing(dev);
}
