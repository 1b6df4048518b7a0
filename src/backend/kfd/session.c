// SPDX-License-Identifier: MIT
#include "backend/kfd/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define INIT_PID 1 /* somebody else's process, that is always there */

uint32_t gp_session_version(const char *root)
{
	char path[4096];
	uint32_t version = 0;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s%s", root, KFD_SESSION_VERSION_FILE) >= (int)sizeof(path))
		return 0;
	f = fopen(path, "re");
	if (f && fscanf(f, "%u", &version) != 1)
		version = 0;
	if (f)
		fclose(f);
	return version;
}

static int call(int fd, struct kfd_session_args *args)
{
	int r;

	do
		r = ioctl(fd, KFD_IOC_SESSION, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int call_for(int fd, uint32_t op, struct kfd_session_queue *queues, uint32_t n, uint32_t *ret_cycles)
{
	struct kfd_session_args args = {
		.op = op, .set = { .queues = (uintptr_t)queues, .n = n, .queue_size = sizeof(*queues) }
	};
	int r = call(fd, &args);

	if (r == 0)
		*ret_cycles = args.set.cycles;
	return r;
}

/* Any call does. That process has no queues, so no GPU is waited for. */
static int renew(int fd)
{
	struct kfd_session_queue queue = { .pid = INIT_PID, .queue_id = KFD_SESSION_ALL_QUEUES };
	uint32_t cycles;

	return call_for(fd, KFD_SESSION_QUERY, &queue, 1, &cycles);
}

static void close_session(int fd)
{
	close(fd);
}

static int set(int fd, struct kfd_session_queue *queues, uint32_t n, uint32_t *ret_cycles)
{
	return call_for(fd, KFD_SESSION_SET, queues, n, ret_cycles);
}

static int create(uint64_t lease_ns, uint32_t *ret_rights)
{
	struct kfd_session_args args = { .op = KFD_SESSION_CREATE, .create = { .lease_ns = lease_ns } };
	int r, kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	if (kfd < 0)
		return -errno;
	r = call(kfd, &args);
	close(kfd);
	if (r < 0)
		return r;
	*ret_rights = args.create.rights;
	return args.create.fd;
}

int gp_session_open_own(uint64_t lease_ns)
{
	uint32_t rights;

	return create(lease_ns, &rights);
}

/* Whether it reaches others depends on capabilities in the first user namespace: the driver knows. */
static int open_session(uint64_t lease_ns)
{
	uint32_t rights = 0;
	int fd = create(lease_ns, &rights);

	if (fd < 0 || rights & KFD_SESSION_RIGHT_ALL)
		return fd;
	close(fd);
	return -EPERM;
}

const struct gp_session_ops gp_kfd_session = {
	.open = open_session,
	.set = set,
	.tell = call,
	.renew = renew,
	.close = close_session,
};

int gp_session_status(const struct kfd_session_queue *entry, const char **ret_why)
{
	static const struct {
		int status;
		const char *why;
	} said[] = {
		[KFD_SESSION_NOT_FOUND] = { -ENOENT, "the driver has no such queue" },
		[KFD_SESSION_NO_CHANGE] = { 0, NULL },
		[KFD_SESSION_DONE] = { 0, NULL },
		[KFD_SESSION_DESTROYED] = { -ENOENT, "the queue is about to be destroyed" },
		[KFD_SESSION_BUSY] = { -EBUSY, "another scheduling session has stopped it" },
		[KFD_SESSION_UNSUPPORTED] = { -EOPNOTSUPP, "this GPU cannot save waves" },
		[KFD_SESSION_RESET] = { 0, "the queue was reset, and runs no more" },
		[KFD_SESSION_FAILED] = { -EIO, "the GPU did not answer" },
		[KFD_SESSION_DENIED] = { -EPERM, "the driver does not let gpreemptd reach it" },
	};
	uint32_t status = entry->status;

	*ret_why = "the driver says what this gpreempt does not know";
	if (status >= sizeof(said) / sizeof(said[0]))
		return -EPROTO;
	/* Of one that was stopped before, the state alone tells. */
	if (said[status].status == 0 && entry->state & KFD_SESSION_WAS_RESET)
		status = KFD_SESSION_RESET;
	*ret_why = said[status].why;
	return said[status].status;
}
