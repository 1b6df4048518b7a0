// SPDX-License-Identifier: MIT
/* bed: timeout=240 vm=own memory=3G devices=2 param=cus=4 */
/*
 * GPUs go and come while a session that has outlived its process is used: a call finds a GPU or does not, and
 * touches none that is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define DRIVER "/sys/bus/pci/drivers/amdgpu/"
#define TIMES 10
#define CALLERS 3
#define ENOUGH KFD_SOON

static int session;
static uint32_t gpu_ids[KFD_MAX_GPUS];
static volatile int ends, calls;

/* Makes a session, hands it over and ends: nothing of it is left but that. */
static void give(int socket)
{
	struct kfd kfd;
	int r = kfd_open(&kfd);

	if (r < 0)
		_exit(1);
	for (uint32_t i = 0; i < kfd.ngpus; i++)
		gpu_ids[i] = kfd.gpus[i].gpu_id;
	if (write(socket, gpu_ids, sizeof(gpu_ids)) != sizeof(gpu_ids))
		_exit(1);
	kfd_send_file(socket, session_open(&kfd, 0));
	_exit(0);
}

/* A GPU that goes under a process that the driver still has is a fault of its own. */
static int wait_until_gone(pid_t pid)
{
	uint64_t end = kfd_now() + ENOUGH;

	while (kfd_proc_value(pid, "pasid") >= 0)
		if (kfd_now() > end)
			return -ETIMEDOUT;
	kfd_sleep(500 * DBG_MS);
	return 0;
}

static int take(void)
{
	int sockets[2], status = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		give(sockets[1]);
	if (read(sockets[0], gpu_ids, sizeof(gpu_ids)) != sizeof(gpu_ids))
		return -EIO;
	session = kfd_receive_file(sockets[0]);
	waitpid(pid, &status, 0);
	return session < 0 || status ? -EIO : wait_until_gone(pid);
}

/* Of everything on one GPU, which takes its lock and looks at all of its processes. */
static int set_gpu(uint32_t gpu_id, uint32_t want)
{
	struct kfd_session_queue queue = session_queue(-1, KFD_SESSION_ALL_QUEUES, want);
	int r;

	queue.gpu_id = gpu_id;
	r = session_set(session, &queue, 1, NULL);
	return r < 0 ? r : (int)queue.status;
}

static void *call(void *odd)
{
	for (uint32_t i = 0; !ends; i++) {
		int r = set_gpu(gpu_ids[i / 2 % 2], i & 1 ? KFD_SESSION_RUN : KFD_SESSION_STOP);

		if (r != KFD_SESSION_NOT_FOUND && r != KFD_SESSION_NO_CHANGE && r != KFD_SESSION_DONE)
			*(int *)odd = r;
		session_reserve(session, gpu_ids[0], 50, 50, 0, NULL);
		__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static int tell(const char *file, const char *device)
{
	char path[256];
	int fd, r;

	snprintf(path, sizeof(path), DRIVER "%s", file);
	fd = open(path, O_WRONLY);
	r = fd < 0 ? -errno : write(fd, device, strlen(device)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* The first PCI device that the driver has. */
static int find_device(char *ret, size_t size)
{
	DIR *d = opendir(DRIVER);
	struct dirent *e;
	int found = 0;

	while (d && !found && (e = readdir(d))) {
		found = strchr(e->d_name, ':') && e->d_name[0] != '.';
		if (found)
			snprintf(ret, size, "%s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

static int calls_go_on(void)
{
	int before = calls;
	uint64_t end = kfd_now() + ENOUGH;

	while (calls < before + 10 && kfd_now() < end)
		kfd_sleep(DBG_MS);
	return calls >= before + 10;
}

static void go_and_come(const char *device)
{
	pthread_t threads[CALLERS];
	int odd = 0, well = 0;

	for (int i = 0; i < CALLERS; i++)
		pthread_create(&threads[i], NULL, call, &odd);
	for (int i = 0; i < TIMES; i++)
		well += calls_go_on() && tell("unbind", device) == 0 && calls_go_on() &&
			tell("bind", device) == 0;
	ends = 1;
	for (int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	ok(well == TIMES, "a GPU goes and comes %d times while a session is used", well);
	ok(odd == 0, "each call found it, or did not (%d)", odd);
}

int main(void)
{
	char device[256];
	int r;

	if (session_missing())
		return 0;
	r = take();
	if (!ok(r == 0 && find_device(device, sizeof(device)),
		"a process leaves nothing but its session (%d)", r))
		return tap_done();
	go_and_come(device);
	ok(close(session) == 0, "the session ends");
	return tap_done();
}
