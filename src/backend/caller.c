// SPDX-License-Identifier: MIT
#include "backend/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

pid_t gp_this_thread(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Some sandboxes refuse the call. */
int gp_caller_peek(const void *args, void *buffer, size_t size)
{
	struct iovec local = { buffer, size }, remote = { (void *)(uintptr_t)args, size };
	ssize_t r = process_vm_readv(gp_this_thread(), &local, 1, &remote, 1, 0);

	if (r < 0 && (errno == EPERM || errno == ENOSYS) && args) {
		memcpy(buffer, args, size);
		return 1;
	}
	return r == (ssize_t)size;
}

int gp_caller_poke(void *args, const void *buffer, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)buffer, size }, remote = { args, size };
	ssize_t r = process_vm_writev(gp_this_thread(), &local, 1, &remote, 1, 0);

	if (r < 0 && (errno == EPERM || errno == ENOSYS)) {
		memcpy(args, buffer, size);
		return 1;
	}
	return r == (ssize_t)size;
}

void gp_driver_file_init(struct gp_driver_file *file, const char *variable, const char *usual)
{
	const char *path = secure_getenv(variable);

	file->device = 0;
	(void)snprintf(file->path, sizeof(file->path), "%s", path && *path ? path : usual);
}

/* A character device's number, never 0; 0 for any other file. */
static uint64_t device_number(int fd, const char *path, int flags)
{
	struct statx s;

	if (statx(fd, path, flags, STATX_TYPE, &s) < 0 || !S_ISCHR(s.stx_mode))
		return 0;
	return 1ull << 63 | (uint64_t)s.stx_rdev_major << 32 | s.stx_rdev_minor;
}

int gp_driver_file_is(struct gp_driver_file *file, int fd)
{
	uint64_t number = device_number(fd, "", AT_EMPTY_PATH), known;

	if (!number)
		return 0;
	known = __atomic_load_n(&file->device, __ATOMIC_RELAXED);
	if (number == known)
		return 1;
	/* The driver may have been loaded, or loaded again, meanwhile. Where its file is out of reach by now,
	 * what was known stays. */
	known = device_number(AT_FDCWD, file->path, 0);
	if (known)
		__atomic_store_n(&file->device, known, __ATOMIC_RELAXED);
	return number == known;
}
