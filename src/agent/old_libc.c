// SPDX-License-Identifier: MIT
/*
 * Calls that not every C library has: what is bound here is not asked of it.  A library that names one
 * that is missing ends the program that loads it.  fcntl64 came with glibc 2.28 and is not in musl;
 * statx came with glibc 2.28 and musl 1.2.4.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fcntl64(int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = va_arg(args, long); /* int and pointers lie in the same place */
	va_end(args);
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

int statx(int folder, const char *restrict path, int flags, unsigned int mask, struct statx *restrict ret)
{
	return (int)syscall(SYS_statx, folder, path, flags, mask, ret);
}
