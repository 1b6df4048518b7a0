// SPDX-License-Identifier: MIT
/*
 * Preloaded behind the agent: an ioctl() that answers as amdkfd would for the file that
 * GPREEMPT_KFD names, and passes on everything else.  KFD_DOUBLE_LOG: a file that gets a
 * line for each call the driver would have seen.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"

#define MOST 64

static int exists[MOST], owner; /* queues are a process's: a child has none */

/* Not stat(), which is newer in the library than any that tests load this into. */
static int device_of(int folder, const char *path, struct statx *ret)
{
	return statx(folder, path, AT_EMPTY_PATH, STATX_TYPE, ret) == 0 && S_ISCHR(ret->stx_mode);
}

static int is_driver(int fd)
{
	static struct statx driver; /* as it was when it could last be seen */
	const char *path = getenv("GPREEMPT_KFD");
	struct statx a;

	if (path)
		(void)device_of(AT_FDCWD, path, &driver);
	return driver.stx_mode && device_of(fd, "", &a) && a.stx_rdev_major == driver.stx_rdev_major &&
	       a.stx_rdev_minor == driver.stx_rdev_minor;
}

static void note(const char *call, uint32_t id, uint32_t value)
{
	const char *path = getenv("KFD_DOUBLE_LOG");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s %u %u\n", call, id, value);
	close(fd);
}

static int refuse(int error)
{
	errno = error;
	return -1;
}

static int create(struct kfd_create_queue_args *args)
{
	for (uint32_t id = 0; id < MOST; id++) {
		if (exists[id])
			continue;
		exists[id] = 1;
		args->queue_id = id;
		note("create", id, args->priority);
		return 0;
	}
	return refuse(ENOSPC);
}

static int update(const struct kfd_update_queue_args *args)
{
	if (args->percent > 100)
		return refuse(EINVAL);
	if (args->queue_id >= MOST || !exists[args->queue_id])
		return refuse(EFAULT);
	note("update", args->queue_id, args->percent);
	return 0;
}

static int destroy(const struct kfd_destroy_queue_args *args)
{
	if (args->queue_id >= MOST || !exists[args->queue_id])
		return refuse(EINVAL);
	exists[args->queue_id] = 0;
	note("destroy", args->queue_id, 0);
	return 0;
}

static int answer(unsigned int nr, void *args)
{
	if (owner != getpid())
		for (int i = 0; i < MOST; i++)
			exists[i] = 0;
	owner = getpid();
	if (!args)
		return refuse(EFAULT);
	switch (nr) {
	case _IOC_NR(KFD_IOC_CREATE_QUEUE):
		return create(args);
	case _IOC_NR(KFD_IOC_UPDATE_QUEUE):
		return update(args);
	case _IOC_NR(KFD_IOC_DESTROY_QUEUE):
		return destroy(args);
	default:
		return refuse(ENOTTY);
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *args;

	va_start(list, request);
	args = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) == 'K' && is_driver(fd))
		return answer(_IOC_NR(request), args);
	return (int)syscall(SYS_ioctl, fd, request, args);
}
