/* SPDX-License-Identifier: MIT */
/* What the unit tests of the model share: cmocka, and devices with numbers that are easy to add up. */
#ifndef GP_TESTS_UNIT_H
#define GP_TESTS_UNIT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "model/device.h"

/* 8 wave slots. Saving a wave takes 1000 ns after 500, restoring one 1000 ns after 700. */
static inline struct gpm_device small_concurrent_device(void)
{
	return (struct gpm_device){
		.sharing = GPM_CONCURRENT,
		.xccs = 2,
		.cus_per_xcc = 2,
		.waves_per_cu = 2,
		.queue_slots = 24,
		.save_bytes_per_wave = 1000,
		.save_bytes_per_us = 1000,
		.save_fixed_ns = 500,
		.restore_fixed_ns = 700,
		.unmap_ns = 100,
		.fence_ns = 50,
		.map_fixed_ns = 200,
		.map_queue_ns = 10,
		.quantum_ns = 1000000,
		.yields = 1,
		.yield_notice_ns = 1000,
		.yield_linger_ns = 5000,
		.dispatch_ns = 20,
		.launch_ns = 300,
		.gate_ns = 30,
		.turn_away_ns = 40,
		.sample_ns = 1000,
	};
}

/* 8 wave slots, slices of 1000 ns (100 in the background), 50 ns to switch, no gap between kernels. */
static inline struct gpm_device small_timeslice_device(void)
{
	return (struct gpm_device){
		.sharing = GPM_TIMESLICE,
		.xccs = 1,
		.cus_per_xcc = 4,
		.waves_per_cu = 2,
		.save_bytes_per_us = 1000,
		.quantum_ns = 1000000,
		.slice_ns = 1000,
		.yield_slice_ns = 100,
		.switch_ns = 50,
		.yields = 1,
		.launch_ns = 300,
		.gate_ns = 30,
		.turn_away_ns = 40,
		.sample_ns = 1000,
	};
}

#endif
