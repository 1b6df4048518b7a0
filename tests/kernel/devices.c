// SPDX-License-Identifier: MIT
/* bed: timeout=180 memory=4G devices=8 xccs=8 param=cus=4 */
/* Eight devices of eight XCCs: one process uses all of them at once. */
#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

static struct kfd kfd;
static struct kfd_queue queues[KFD_MAX_GPUS];
static struct kfd_signal *signals[KFD_MAX_GPUS];

static int begin(uint32_t i)
{
	struct kfd_mem mem;
	int r = kfd_alloc(&kfd, &kfd.gpus[i], sizeof(*signals[i]), &mem);

	if (r == 0)
		r = kfd_queue_create(&kfd, &kfd.gpus[i], KFD_TYPE_AQL, 7, &queues[i]);
	if (r < 0)
		return r;
	signals[i] = mem.addr;
	signals[i]->value = 1;
	return 0;
}

/* Eight command processors share two CPUs: give each time to see its packet. */
static int runs(int i)
{
	for (int tries = 0; tries < 200 && kfd_stat(i, "dispatches") < 1; tries++)
		kfd_sleep(10 * MS);
	return kfd_stat(i, "dispatches") == 1;
}

int main(void)
{
	int well = 0;

	ok(kfd_open(&kfd) == 0 && kfd.ngpus == 8, "there are eight devices");
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd.gpus[i].num_xcc == 8;
	ok(well == 8, "of eight XCCs each");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += begin(i) == 0;
	ok(well == 8, "each has a queue");
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		kfd_dispatch(&queues[i], 64, 5 * SECOND, signals[i]);
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += runs((int)i);
	ok(well == 8, "and work that runs");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd_queue_update(&queues[i], 0, 7) == 0;
	ok(well == 8, "each is stopped");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd_stat((int)i, "saves") == 1 && kfd_stat((int)i, "waves_saved") == 256;
	for (uint32_t i = 0; well < 8 && i < kfd.ngpus; i++)
		note("device %u: %lld saves, %lld waves", i, (long long)kfd_stat((int)i, "saves"),
		     (long long)kfd_stat((int)i, "waves_saved"));
	ok(well == 8, "the waves of all XCCs of each were saved");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd_queue_update(&queues[i], 100, 7) == 0 && kfd_wait(signals[i], KFD_SOON) == 0;
	ok(well == 8, "each goes on and ends");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd_stat((int)i, "waves_restored") == 256 && kfd_stat((int)i, "bad_restores") == 0;
	ok(well == 8, "all waves came back");
	well = 0;
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		well += kfd_queue_destroy(&queues[i]) == 0;
	ok(well == 8, "each queue is destroyed");
	kfd_close(&kfd);
	return tap_done();
}
