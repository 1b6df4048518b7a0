/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The constants of one GPU, as share/devices/NAME.ini gives them.  The names here
 * are the keys there.  Times are in ns, and gpm_device_check() is what makes a set
 * of numbers a device.
 */
#ifndef GPM_DEVICE_H
#define GPM_DEVICE_H

#include "types.h"

enum gpm_sharing {
	GPM_CONCURRENT, /* queues in hardware slots share the wave slots (AMD) */
	GPM_TIMESLICE,  /* one client at a time, by time slices (NVIDIA) */
};

/* X(key, smallest, largest): one list for the struct, the parser and the JSON. */
#define GPM_DEVICE_KEYS(X) \
	/* shape */ \
	X(sharing, 0, 1) \
	X(xccs, 1, 64) \
	X(cus_per_xcc, 1, 1024) \
	X(waves_per_cu, 1, 128) \
	X(queue_slots, 0, 1024) \
	/* context save and restore: bytes over bandwidth, plus a fixed part */ \
	X(save_bytes_per_wave, 0, 1 << 24) \
	X(save_bytes_per_us, 1, 1ull << 40) \
	X(save_fixed_ns, 0, 1000000000) \
	X(restore_fixed_ns, 0, 1000000000) \
	/* one device cycle: unmap, (save), fence, map */ \
	X(unmap_ns, 0, 1000000000) \
	X(fence_ns, 0, 1000000000) \
	X(map_fixed_ns, 0, 1000000000) \
	X(map_queue_ns, 0, 1000000000) \
	X(selective, 0, 1) \
	/* more queues than slots */ \
	X(quantum_ns, 1000, 10000000000) \
	/* time slices */ \
	X(slice_ns, 0, 10000000000) \
	X(yield_slice_ns, 0, 10000000000) \
	X(switch_ns, 0, 1000000000) \
	/* who can give way without a call, and how fast it notices */ \
	X(yields, 0, 1) \
	X(yield_notice_ns, 0, 1000000000) \
	X(yield_linger_ns, 0, 1000000000) \
	/* command queues */ \
	X(dispatch_ns, 0, 1000000000) \
	X(launch_ns, 0, 1000000000) \
	X(gate_ns, 0, 1000000000) \
	X(turn_away_ns, 0, 1000000000) \
	/* the host: a message to another process, and the driver's calls (fastest, slowest) */ \
	X(message_ns, 0, 1000000000) \
	X(sample_ns, 1000, 1000000000) \
	X(stop_call_min_ns, 0, 1000000000) \
	X(stop_call_max_ns, 0, 1000000000) \
	X(resume_call_min_ns, 0, 1000000000) \
	X(resume_call_max_ns, 0, 1000000000) \
	X(slice_call_min_ns, 0, 1000000000) \
	X(slice_call_max_ns, 0, 1000000000) \
	X(slice_calls, 0, 64)

struct gpm_device {
#define GPM_FIELD(key, min, max) gpm_u64 key;
	GPM_DEVICE_KEYS(GPM_FIELD)
#undef GPM_FIELD
};

/* What is wrong with it, as a sentence that says what to write instead; NULL if it adds up. */
const char *gpm_device_check(const struct gpm_device *dev);

static inline gpm_u64 gpm_wave_slots(const struct gpm_device *dev)
{
	return dev->xccs * dev->cus_per_xcc * dev->waves_per_cu;
}

#endif
