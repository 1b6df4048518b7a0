// SPDX-License-Identifier: MIT
/*
 * Not a test: programs that do with their process what they like, on $GPREEMPT_KFD.  guest.py
 * starts them with and without the agent.
 *
 *   guest cancel   threads are cancelled asynchronously in their calls to the driver
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"

#define MOST_QUEUES 64 /* of the double */
#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static int driver;

static int create(void)
{
	struct kfd_create_queue_args args = {
		.ring = 4096, .ring_size = 4096, .type = KFD_TYPE_AQL, .percent = 100, .priority = 7
	};

	return ioctl(driver, KFD_IOC_CREATE_QUEUE, &args) < 0 ? -errno : (int)args.queue_id;
}

static int update(int queue, uint32_t percent)
{
	struct kfd_update_queue_args args = { .ring = 4096,
					      .queue_id = (uint32_t)queue,
					      .ring_size = 4096,
					      .percent = percent,
					      .priority = 7 };

	return ioctl(driver, KFD_IOC_UPDATE_QUEUE, &args) < 0 ? -errno : 0;
}

static int destroy(int queue)
{
	struct kfd_destroy_queue_args args = { .queue_id = (uint32_t)queue };

	return ioctl(driver, KFD_IOC_DESTROY_QUEUE, &args) < 0 ? -errno : 0;
}

/* Cancelled threads */

static void *call_until_cancelled(void *arg)
{
	int queue = *(int *)arg, type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (uint32_t i = 0;; i++) {
		update(queue, i % 100);
		if (i % 3 == 2)
			destroy(queue), queue = create();
	}
	return NULL;
}

static int cancel(void)
{
	int first = create(), other = create();
	struct timespec t = { 0 };
	pthread_t thread;

	for (int i = 0; i < 500; i++) {
		if (pthread_create(&thread, NULL, call_until_cancelled, &other))
			return 1;
		t.tv_nsec = 20000 + i * 7919 % 50000;
		nanosleep(&t, NULL);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		for (int id = 0; id < MOST_QUEUES; id++)
			if (id != first)
				destroy(id); /* whichever it left */
		other = create();
		if (other < 0 || update(first, 50) < 0)
			return 2;
	}
	puts("fine");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} parts[] = {
	{ "cancel", cancel },
};

int main(int argc, char **argv)
{
	driver = open(getenv("GPREEMPT_KFD"), O_RDWR | O_CLOEXEC);
	for (size_t i = 0; argc > 1 && i < ELEMENTS(parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			return parts[i].run();
	return 99;
}
