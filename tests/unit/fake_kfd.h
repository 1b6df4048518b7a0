/* SPDX-License-Identifier: MIT */
/* amdkfd's calls about queues, made of a table. Calls may come from several threads. */
#ifndef GP_TESTS_FAKE_KFD_H
#define GP_TESTS_FAKE_KFD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "backend/kfd/uapi.h"

#define FILE_OF_DRIVER "/dev/full" /* a character device that nothing else here opens */
#define MOST 1200
#define ANY_CALL 0x100u

struct fake_queue {
	int exists, preempted;
	struct kfd_update_queue_args set;
	uint32_t type, updates;
};

/* The driver. Its own lock, because calls come from several threads. */
static struct {
	pthread_mutex_t lock;
	struct fake_queue queues[MOST];
	uint32_t calls;              /* of any kind */
	uint32_t fail_nr, fail_with; /* the next such calls: all of them */
	int has_private, takes_any_share;
	uint64_t preempt_type, preempt_ms;
	void (*before)(unsigned long request, const void *args); /* it is done, with no lock held */
	void (*after)(unsigned long request, const void *args);
	uint32_t last_size; /* of a request */
} driver;

static int refuse(int error)
{
	errno = error;
	return -1;
}

static int fake_create(struct kfd_create_queue_args *a)
{
	uint32_t id = 0;

	while (id < MOST && driver.queues[id].exists)
		id++;
	if (id == MOST)
		return refuse(ENOSPC);
	driver.queues[id] = (struct fake_queue){ .exists = 1, .type = a->type };
	driver.queues[id].set = (struct kfd_update_queue_args){ .ring = a->ring,
								.queue_id = id,
								.ring_size = a->ring_size,
								.percent = a->percent,
								.priority = a->priority };
	a->queue_id = id;
	a->doorbell_offset = 0x1000 + id;
	return 0;
}

static int fake_update(const struct kfd_update_queue_args *a)
{
	if (((a->percent & 0xff) > 100 && !driver.takes_any_share) || a->priority > 15)
		return refuse(EINVAL);
	if (a->queue_id >= MOST || !driver.queues[a->queue_id].exists)
		return refuse(EFAULT);
	driver.queues[a->queue_id].set = *a;
	driver.queues[a->queue_id].updates++;
	return 0;
}

static int fake_preempt(uint32_t queue_id, int preempted)
{
	if (!driver.has_private)
		return refuse(ENOTTY);
	if (queue_id >= MOST || !driver.queues[queue_id].exists)
		return refuse(ENOENT);
	driver.queues[queue_id].preempted = preempted;
	return 0;
}

static int fake_call(unsigned long request, void *args)
{
	const uint32_t *id = args;

	switch (_IOC_NR(request)) {
	case 0x02:
		return fake_create(args);
	case 0x03:
		if (*id >= MOST || !driver.queues[*id].exists)
			return refuse(EINVAL);
		driver.queues[*id].exists = 0;
		return 0;
	case 0x07:
		return fake_update(args);
	case 0x87:
		driver.preempt_type = ((struct kfd_private_preempt_args *)args)->type;
		driver.preempt_ms = ((struct kfd_private_preempt_args *)args)->timeout_ms;
		return fake_preempt(*id, 1);
	case 0x88:
		return fake_preempt(*id, 0);
	default:
		return refuse(ENOTTY);
	}
}

static int fake_ioctl(int f, unsigned long request, void *args)
{
	void (*before)(unsigned long, const void *) = driver.before;
	void (*after)(unsigned long, const void *) = driver.after;
	int r, error;

	if (before)
		before(request, args);
	pthread_mutex_lock(&driver.lock);
	driver.calls++;
	driver.last_size = _IOC_SIZE(request);
	if (!args)
		r = refuse(EFAULT);
	else if (driver.fail_with && (driver.fail_nr == _IOC_NR(request) || driver.fail_nr == ANY_CALL))
		r = refuse((int)driver.fail_with);
	else
		r = fcntl(f, F_GETFD) < 0 ? -1 : fake_call(request, args);
	error = errno;
	pthread_mutex_unlock(&driver.lock);
	errno = error;
	if (after)
		after(request, args);
	return r;
}

static inline void fake_reset(void)
{
	memset(&driver, 0, sizeof(driver));
	pthread_mutex_init(&driver.lock, NULL);
}

#endif
