// SPDX-License-Identifier: MIT
/*
 * agent_cost other N: N ioctls on a file that is not the driver's.
 * agent_cost kfd N: N updates of a queue on $GPREEMPT_KFD, behind a double of the driver.
 * agent_cost sample QUEUES: the agent's thread at work in this process; prints the parts per
 * million of a core that it takes while all queues are used all the time.
 */
#include <sys/ioctl.h>

#include "agent_host.h"

/* What callgrind counts: alone, so that nothing of the set-up is in it. */
void measured_other(int fd, long n);
void measured_kfd(int fd, struct kfd_update_queue_args *args, long n);

__attribute__((noinline)) void measured_other(int fd, long n)
{
	char unused[64];

	for (long i = 0; i < n; i++)
		(void)ioctl(fd, 0x5401, unused); /* TCGETS, on what is no terminal */
}

__attribute__((noinline)) void measured_kfd(int fd, struct kfd_update_queue_args *args, long n)
{
	for (long i = 0; i < n; i++)
		(void)ioctl(fd, KFD_IOC_UPDATE_QUEUE, args);
}

static int other(long n)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	char unused[64];

	(void)ioctl(fd, 0x5401, unused); /* bound, and our part of it resolved */
	measured_other(fd, n);
	return 0;
}

static int kfd(long n)
{
	struct kfd_create_queue_args create = {
		.ring = 4096, .ring_size = 4096, .type = KFD_TYPE_AQL, .percent = 100
	};
	struct kfd_update_queue_args update = { .ring = 4096, .ring_size = 4096, .percent = 100 };
	int fd = open(getenv("GPREEMPT_KFD"), O_RDWR | O_CLOEXEC);
	struct timespec a_while = { .tv_nsec = 200000000 };

	if (ioctl(fd, KFD_IOC_CREATE_QUEUE, &create) < 0) {
		perror("CREATE_QUEUE");
		return 1;
	}
	nanosleep(&a_while, NULL); /* the agent's thread sleeps by then */
	update.queue_id = create.queue_id;
	measured_kfd(fd, &update, 1);
	measured_kfd(fd, &update, n);
	return 0;
}

/* Keeps the queues changing and the socket empty for a while; how many of the messages were about activity.
 */
static long use_queues(int peer, int n, int flap, uint64_t ns)
{
	static unsigned char packet[GP_WIRE_MOST_BYTES];
	struct timespec a_bit = { .tv_nsec = 300000 };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;
	long messages = 0;

	for (uint64_t round = 1; clock_ns(CLOCK_MONOTONIC) < end; round++) {
		for (int i = 0; i < n; i++) {
			__atomic_store_n(&pointers[i][1], round, __ATOMIC_RELAXED);
			__atomic_store_n(&pointers[i][0], flap && round % 2 ? round : round - 1,
					 __ATOMIC_RELAXED);
		}
		while (recv(peer, packet, sizeof(packet), MSG_DONTWAIT) > 0)
			messages += packet[4] == GP_MSG_ACTIVITY;
		nanosleep(&a_bit, NULL);
	}
	return messages;
}

static void measure(int peer, int n, int flap, const char *what)
{
	uint64_t wall, mine, all;
	long messages;

	(void)use_queues(peer, n, flap, SECOND / 2);
	wall = clock_ns(CLOCK_MONOTONIC);
	all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	mine = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	messages = use_queues(peer, n, flap, 2 * SECOND);
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	mine = clock_ns(CLOCK_THREAD_CPUTIME_ID) - mine;
	all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all;
	printf("%s %llu %ld\n", what, (unsigned long long)((all - mine) * 1000000 / wall), messages / 2);
}

static int sample(uint32_t n)
{
	int peer = start_agent(n, GP_CLASS_UNKNOWN);

	if (peer < 0)
		return 1;
	measure(peer, (int)n, 0, "busy");
	measure(peer, (int)n, 1, "flapping");
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (n > 0 && !strcmp(argv[1], "other"))
		return other(n);
	if (n > 0 && !strcmp(argv[1], "kfd"))
		return kfd(n);
	if (n > 0 && n <= QUEUES && !strcmp(argv[1], "sample"))
		return sample((uint32_t)n);
	return 2;
}
