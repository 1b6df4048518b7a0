// SPDX-License-Identifier: MIT
/*
 * What src/discover/ makes of the real driver's files is what the program that owns the queues knows of them.
 *
 * bed: timeout=180 devices=2 xccs=2 param=cus=4
 */
#include <string.h>
#include <unistd.h>

#include "discover/discover.h"
#include "kfd.h"
#include "tap.h"

#define QUEUES 7

static const struct {
	uint32_t gpu, type, priority;
} wanted[QUEUES] = {
	{ 0, KFD_TYPE_AQL, 0 },  { 0, KFD_TYPE_AQL, 7 },  { 0, KFD_TYPE_SDMA, 7 }, { 0, KFD_TYPE_SDMA, 7 },
	{ 1, KFD_TYPE_AQL, 11 }, { 0, KFD_TYPE_AQL, 15 }, { 1, KFD_TYPE_SDMA, 7 },
};

static struct kfd kfd;
static struct kfd_queue queues[QUEUES];

static struct gp_found *look(void)
{
	const struct gp_discover_opts opts = { .pid = (uint32_t)getpid(), .flags = GP_DISCOVER_HQDS };
	struct gp_found *found;

	return gp_discover(&opts, &found) == 0 ? found : NULL;
}

static const struct gp_found_queue *find(const struct gp_found *found, int i)
{
	return gp_found_by_ring(found, (uint32_t)getpid(), (uintptr_t)queues[i].ring.addr);
}

static int is_known(const struct gp_found *found, int i)
{
	const struct gp_found_queue *q = find(found, i);
	int sdma = queues[i].type == KFD_TYPE_SDMA;

	if (!q || q->queue_id != queues[i].id || q->gpu_id != queues[i].gpu->gpu_id ||
	    q->ring_size != queues[i].ring_size) {
		note("queue %d: id %d", i, q ? (int)q->queue_id : -1);
		return 0;
	}
	return q->kind == (sdma ? GP_KIND_SDMA : GP_KIND_COMPUTE) &&
	       q->rptr_address == (uintptr_t)queues[i].rptr && q->wptr_address == (uintptr_t)queues[i].wptr &&
	       (sdma || q->priority == wanted[i].priority);
}

static void everything_is_known(const char *when)
{
	struct gp_found *found = look();
	int well = 0, certain = 0;

	for (int i = 0; found && i < QUEUES; i++) {
		well += is_known(found, i);
		certain += find(found, i) && find(found, i)->from[GP_FIELD_ID] == GP_SOURCE_SYSFS;
	}
	ok(found && found->nqueues == QUEUES && well == QUEUES, "every queue is known %s", when);
	ok(certain == 2, "the ids of those alone of their kind on their device are certain");
	ok(found && found->ndevices == 2 && found->devices[0].xccs == 2, "so are the devices");
	ok(found && found->sources[GP_SOURCE_MQDS].skipped == 0 &&
		   found->sources[GP_SOURCE_RLS].skipped == 0 && found->sources[GP_SOURCE_HQDS].skipped == 0,
	   "and no line was strange");
	gp_found_free(found);
}

/* Only what both sources say of whether a queue may run. */
static void a_stopped_queue_is_not_active(void)
{
	struct gp_found *found;

	ok(kfd_queue_update(&queues[1], 0, 7) == 0, "a queue is stopped");
	found = look();
	ok(found && find(found, 1) && !find(found, 1)->active &&
		   find(found, 1)->from[GP_FIELD_ACTIVE] == GP_SOURCE_RLS && !find(found, 1)->mapped,
	   "it is not active and has no slot");
	ok(found && find(found, 0)->active && find(found, 0)->mapped, "another is and has one");
	gp_found_free(found);
	ok(kfd_queue_update(&queues[1], 100, 7) == 0, "it goes on");
	found = look();
	ok(found && find(found, 1)->active, "and is active again");
	gp_found_free(found);
}

static void queues_that_come_and_go_are_seen(void)
{
	struct kfd_queue old = queues[0];

	ok(kfd_queue_create(&kfd, old.gpu, KFD_TYPE_AQL, 0, &queues[0]) == 0 && kfd_queue_destroy(&old) == 0,
	   "a queue is made, and another destroyed");
	everything_is_known("after that");
	/* The number and the doorbell that are free now go to the next. */
	ok(kfd_queue_destroy(&queues[0]) == 0 &&
		   kfd_queue_create(&kfd, old.gpu, KFD_TYPE_AQL, 0, &queues[0]) == 0 &&
		   queues[0].id == old.id,
	   "a number is used again");
	everything_is_known("then too");
}

int main(void)
{
	int well = 0;

	if (!ok(kfd_open(&kfd) == 0 && kfd.ngpus == 2, "there are two devices"))
		return tap_done();
	for (int i = 0; i < QUEUES; i++)
		well += kfd_queue_create(&kfd, &kfd.gpus[wanted[i].gpu], wanted[i].type, wanted[i].priority,
					 &queues[i]) == 0;
	ok(well == QUEUES, "with queues");
	everything_is_known("at first");
	a_stopped_queue_is_not_active();
	queues_that_come_and_go_are_seen();
	kfd_close(&kfd);
	return tap_done();
}
