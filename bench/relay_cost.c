// SPDX-License-Identifier: MIT
/*
 * relay_cost TIMES [1]: a packet as long as a request goes to a second process, on to a third, and back the
 * same way.  That is the least that tool, daemon and agent cost; prints the round trip's p50 and p99 in ns.
 * With 1 the second answers itself.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES 264     /* of a message with one item */
#define PAUSE_US 2000 /* between two, so that everybody sleeps */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int pass(int from, int to)
{
	char packet[BYTES];

	return recv(from, packet, BYTES, 0) == BYTES && send(to, packet, BYTES, MSG_NOSIGNAL) == BYTES;
}

/* Passes on to the next process, if there is one, until nobody sends any more. */
static void relay(int above, int below)
{
	while (below < 0 ? pass(above, above) : pass(above, below) && pass(below, above))
		;
	_exit(0);
}

/* So many processes in a row, one or two; the descriptor to the first. */
static int start_relays(int n)
{
	int first[2], second[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, first) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, second) < 0)
		return -1;
	if (fork() == 0) {
		close(first[0]);
		close(second[1]);
		relay(first[1], n > 1 ? second[0] : -1);
	}
	if (fork() == 0) {
		close(first[0]);
		close(first[1]);
		close(second[0]);
		relay(second[1], -1);
	}
	close(first[1]);
	close(second[0]);
	close(second[1]);
	return first[0];
}

int main(int argc, char **argv)
{
	size_t times = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	uint64_t *trips = calloc(times ? times : 1, sizeof(*trips));
	char packet[BYTES] = "";
	int fd = start_relays(argc > 2 ? atoi(argv[2]) : 2);

	if (!times || !trips || fd < 0) {
		fprintf(stderr, "usage: relay_cost TIMES [1]\n");
		return 2;
	}
	for (size_t i = 0; i < times; i++) {
		uint64_t begin = now_ns();

		if (send(fd, packet, BYTES, 0) != BYTES || recv(fd, packet, BYTES, 0) != BYTES)
			return 1;
		trips[i] = now_ns() - begin;
		usleep(PAUSE_US);
	}
	qsort(trips, times, sizeof(*trips), by_value);
	printf("%" PRIu64 " %" PRIu64 "\n", trips[times / 2], trips[(times * 99 - 1) / 100]);
	free(trips);
	return 0;
}
