// SPDX-License-Identifier: MIT
/*
 * What every other test here relies on: the machine asked for, the driver, the host's programs.
 *
 * bed: devices=2
 */
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"
#include "tap.h"

static unsigned long read_number(const char *path)
{
	unsigned long value = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		return 0;
	if (fscanf(file, "%lu", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* Nodes of the topology that are GPUs: CPUs have the id 0. */
static unsigned long count_gpus(void)
{
	unsigned long gpus = 0;
	glob_t found;

	if (glob("/sys/class/kfd/kfd/topology/nodes/*/gpu_id", 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++)
		gpus += read_number(found.gl_pathv[i]) != 0;
	globfree(&found);
	return gpus;
}

static int writes(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int good = fd >= 0 && write(fd, "x", 1) == 1;

	if (fd >= 0)
		close(fd);
	return good;
}

static int succeeds(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_driver(void)
{
	struct kfd_version_args version = { 0 };
	const char *devices = getenv("BED_DEVICES") ? getenv("BED_DEVICES") : "";
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	int r;

	ok(fd >= 0, "/dev/kfd opens");
	r = ioctl(fd, KFD_IOC_VERSION, &version);
	ok(r == 0 && version.major == 1, "the driver says its version, %u.%u", version.major, version.minor);
	ok(*devices && count_gpus() == strtoul(devices, NULL, 10), "the topology shows %s GPUs", devices);
	ok(access("/sys/kernel/debug/kfd", R_OK) == 0, "the driver's debugfs is there");
	close(fd);
}

int main(void)
{
	check_driver();
	ok(writes("/dev/shm/bed_smoke"), "shared memory can be had");
	ok(writes("/usr/bed_smoke"), "the root can be written to");
	ok(succeeds("python3 -c 'import ctypes, socket'"), "Python runs, with its shared libraries");
	ok(succeeds("gpreempt --version >/dev/null"), "a program of the build runs");
	return tap_done();
}
