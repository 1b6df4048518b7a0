/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a program needs to know of the software GPU.
 *
 * Packets.  An AQL kernel dispatch runs no code: it takes time.  Its workgroups and
 * waves follow from grid and workgroup size (64 work-items a wave); each wave runs for
 * the nanoseconds in the packet's reserved2 field, or, if that is 0 as the HSA
 * specification wants it, for SOFTGPU_DEFAULT_WAVE_NS.  A signal's timestamps are the
 * model's time: they do not grow with the load of the host, nor while that keeps the
 * machine from running, in which the GPU stands still.
 *
 * A PM4 DISPATCH_DIRECT has its workgroups in the packet, the work-items of one in COMPUTE_NUM_THREAD_X to Z,
 * and the nanoseconds of a wave in COMPUTE_USER_DATA_15 (0: the default), by SET_SH_REG.
 *
 * debugfs, /sys/kernel/debug/softgpu/<device>/:
 *   stats   one "name value" a line, counted since the device came up (names below)
 *   processes  "PASID wave-ns" a line: how long each process's waves ran, from its beginning; it stays
 *           when the process ends, until another has the PASID
 *   faults  write one of the words below to cause a fault; "none" takes it back
 */
#ifndef SOFTGPU_UAPI_H
#define SOFTGPU_UAPI_H

#define SOFTGPU_DEFAULT_WAVE_NS 10000

/*
 * stats
 *   runlist map_process map_queues unmap query_status set_resources write_data	HIQ packets
 *   cycles		UNMAP_QUEUES that took at least one queue off
 *   saves restores	queues whose waves were saved, restored
 *   waves_saved waves_restored	waves written into and read from save areas, whether or not they ran between
 *   bytes_saved		of the waves that ran
 *   quanta		turns of an over-subscribed run list
 *   dispatches barriers signals interrupts
 *   pm4_packets sdma_packets sdma_bytes
 *   mapped active	queues in a hardware slot, in the run list (now)
 *   unread		dwords of HIQ packets that are not counted yet (now)
 *   clock_ns		the model's time (now); it does not grow while the machine stands still
 *   busy_ns		some wave ran
 *   off_ns		from each of the cycles to the run list that followed: no queue was on the device
 *   resets		of the whole GPU
 *   bad_restores	save areas that did not hold what was put there
 *   bad_addresses	GPU addresses without a mapping
 *
 * faults
 *   no-preempt		the next queue that is to be unmapped does not let go
 *   hung-hiq		the HIQ is not read any more
 *   slow-save NS	a save takes so much longer
 *   lost-irq N		the next N interrupts are not delivered
 *   early-rptr		from now on the read pointer moves when a dispatch is taken, not when it has ended
 *			(HSA lets a packet processor do that; no fault, but a program may take it for one)
 *   vm-fault PASID ADDR	a page fault of that process there (hexadecimal)
 *   evict PASID	its queues are evicted, as for want of memory ...
 *   restore PASID	... and come back; evicted twice, they come back with the second
 *   reset		the GPU resets
 *   hold-reset MS	for so long, in which the write does not return, amdkfd is kept from it as by a reset
 *   spin SECONDS	a CPU does nothing else
 *   none
 */

#endif
