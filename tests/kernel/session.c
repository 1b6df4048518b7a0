// SPDX-License-Identifier: MIT
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int session_missing(void)
{
	if (access(KFD_SESSION_VERSION_FILE, F_OK) == 0)
		return 0;
	printf("1..0 # SKIP this driver has no scheduling sessions (kernel/bed/run --patched)\n");
	return 1;
}

int session_call(int fd, struct kfd_session_args *args)
{
	int r = ioctl(fd, KFD_IOC_SESSION, args);

	return r < 0 ? -errno : r;
}

int session_open(struct kfd *k, uint64_t lease_ns)
{
	struct kfd_session_args args = { .op = KFD_SESSION_CREATE, .create = { .lease_ns = lease_ns } };
	int r = session_call(k->fd, &args);

	return r < 0 ? r : args.create.fd;
}

int session_rights(struct kfd *k)
{
	struct kfd_session_args args = { .op = KFD_SESSION_CREATE };
	int r = session_call(k->fd, &args);

	if (r < 0)
		return r;
	close(args.create.fd);
	return (int)args.create.rights;
}

struct kfd_session_queue session_queue(pid_t pid, uint32_t queue_id, uint32_t want)
{
	return (struct kfd_session_queue){ .pid = (uint32_t)pid, .queue_id = queue_id, .want = want };
}

static int call_with(int fd, uint32_t op, struct kfd_session_queue *queues, uint32_t n,
		     struct kfd_session_set *ret_set)
{
	struct kfd_session_args args = {
		.op = op, .set = { .queues = (uintptr_t)queues, .n = n, .queue_size = sizeof(*queues) }
	};
	int r = session_call(fd, &args);

	if (ret_set)
		*ret_set = args.set;
	return r;
}

int session_set(int fd, struct kfd_session_queue *queues, uint32_t n, struct kfd_session_set *ret_set)
{
	return call_with(fd, KFD_SESSION_SET, queues, n, ret_set);
}

int session_one(int fd, pid_t pid, uint32_t queue_id, uint32_t want)
{
	struct kfd_session_queue queue = session_queue(pid, queue_id, want);
	int r = session_set(fd, &queue, 1, NULL);

	return r < 0 ? r : (int)queue.status;
}

int session_all(int fd, pid_t pid, uint32_t want)
{
	return session_one(fd, pid, KFD_SESSION_ALL_QUEUES, want);
}

int session_state(int fd, pid_t pid, uint32_t queue_id)
{
	struct kfd_session_queue queue = session_queue(pid, queue_id, 0);
	int r = call_with(fd, KFD_SESSION_QUERY, &queue, 1, NULL);

	return r < 0 ? r : (int)queue.state;
}

int session_class(int fd, pid_t pid, uint32_t class)
{
	struct kfd_session_args args = { .op = KFD_SESSION_SET_CLASS,
					 .class = { .pid = (uint32_t)pid, .class = class } };

	return session_call(fd, &args);
}

int session_reserve(int fd, uint32_t gpu_id, uint32_t online, uint32_t offline, uint32_t period_ms,
		    struct kfd_session_reservation *ret_args)
{
	struct kfd_session_args args = { .op = KFD_SESSION_SET_RESERVATION,
					 .reservation = { .gpu_id = gpu_id,
							  .online_percent = online,
							  .offline_percent = offline,
							  .period_ms = period_ms } };
	int r = session_call(fd, &args);

	if (ret_args)
		*ret_args = args.reservation;
	return r;
}

int session_is_stopped(int fd, pid_t pid, uint32_t queue_id)
{
	return session_state(fd, pid, queue_id) == (KFD_SESSION_STOPPED | KFD_SESSION_OWN);
}

static struct session_packets count_settled(void)
{
	kfd_settle(0);
	return (struct session_packets){ .unmap = kfd_stat(0, "unmap"),
					 .query = kfd_stat(0, "query_status"),
					 .runlist = kfd_stat(0, "runlist") };
}

struct session_packets session_packets(void)
{
	static struct session_packets last;
	struct session_packets now = count_settled(),
			       since = { now.unmap - last.unmap, now.query - last.query,
					 now.runlist - last.runlist };

	last = now;
	return since;
}

int session_trace(int on)
{
	FILE *f = fopen("/sys/kernel/tracing/events/kfd/enable", "w");
	int r = f ? fputs(on ? "1" : "0", f) : -1;

	return f && fclose(f) == 0 && r >= 0;
}

int session_file_says(const char *path, const char *text)
{
	static char buffer[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buffer, 1, sizeof(buffer) - 1, f) : 0;

	buffer[n] = '\0';
	if (f)
		fclose(f);
	if (strstr(buffer, text))
		return 1;
	printf("# %s has no \"%s\": %.400s\n", path, text, buffer);
	return 0;
}

int session_peer(struct dbg_peer *p, uint32_t queues, uint64_t ms)
{
	int r = dbg_peer_start(p);

	if (r == 0)
		r = dbg_peer_do(p, DBG_OPEN, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_CREATE, queues);
	return r < 0 || !ms ? r : dbg_peer_do(p, DBG_RUN, ms);
}
