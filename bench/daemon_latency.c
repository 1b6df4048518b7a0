// SPDX-License-Identifier: MIT
/*
 * daemon_latency GPREEMPTD [JSON]: from an online client's hint to the stop that an offline agent reads,
 * against a packet's way to a second process and back, in turns, while two spinners of the lowest priority
 * keep the cores busy.  Both take two messages.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bars.h"
#include "base/random.h"
#include "stand_in.h"

#define ROUNDS 7 /* of which one or two may fall on a bad moment of the machine */
#define TIMES 1000
#define BYTES 48 /* of a hint */
#define BAR 3

static void spin(void)
{
	if (spawn())
		return;
	check(nice(19) == 19, "nice");
	while (1)
		;
}

/* The descriptor to a process that sends back what it gets. */
static int start_echo(void)
{
	char packet[BYTES];
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
	if (spawn()) {
		close(ends[1]);
		return ends[0];
	}
	while (recv(ends[1], packet, BYTES, 0) == BYTES && send(ends[1], packet, BYTES, 0) == BYTES)
		;
	_exit(0);
}

/* An offline agent that says when it read what is wanted of it; the descriptor to read that from. */
static int start_offline(void)
{
	uint64_t at = 0; /* first: it is there */
	int said[2], fd;

	check(pipe(said) == 0, "pipe");
	if (spawn()) {
		close(said[1]);
		return said[0];
	}
	fd = stand_in_open(GP_ROLE_AGENT, GP_CLASS_OFFLINE);
	stand_in_tell_queues(fd);
	stand_in_sync(fd);
	while (1) {
		const struct gp_msg *wants;

		check(write(said[1], &at, sizeof(at)) == sizeof(at), "pipe");
		wants = stand_in_hear(fd, GP_MSG_WANTS);
		at = clock_ns();
		stand_in_obey(fd, wants);
	}
}

static uint64_t read_time(int said)
{
	uint64_t at;

	check(read(said, &at, sizeof(at)) == sizeof(at), "the offline agent");
	return at;
}

/* Everybody sleeps. */
static void pause_a_while(struct gp_random *random)
{
	wait_until(clock_ns() + GP_MS + gp_random_between(random, 0, GP_MS));
}

static uint64_t round_trip(int echo)
{
	uint64_t begin = clock_ns();
	char packet[BYTES] = "";

	check(send(echo, packet, BYTES, 0) == BYTES && recv(echo, packet, BYTES, 0) == BYTES, "echo");
	return clock_ns() - begin;
}

static uint64_t hint_to_stop(int online, int said)
{
	uint64_t begin = clock_ns(), at;

	stand_in_hint(online, GP_HINT_BEGIN);
	at = read_time(said);
	stand_in_hint(online, GP_HINT_END);
	(void)read_time(said); /* it runs again */
	return at - begin;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A round's p99 of the one over that of the other; both are added to all. */
static double one_round(int echo, int online, int said, struct gp_random *random, struct gp_hist all[2])
{
	static struct gp_hist round[2];

	memset(round, 0, sizeof(round));
	for (int i = 0; i < TIMES; i++) {
		uint64_t ns[2];

		pause_a_while(random);
		ns[0] = round_trip(echo);
		pause_a_while(random);
		ns[1] = hint_to_stop(online, said);
		for (int k = 0; k < 2; k++) {
			gp_hist_add(&round[k], ns[k]);
			gp_hist_add(&all[k], ns[k]);
		}
	}
	return (double)gp_hist_quantile(&round[1], 9900) / (double)gp_hist_quantile(&round[0], 9900);
}

static int report(double ratios[ROUNDS], const struct gp_hist all[2], const char *file)
{
	struct bars bars;

	qsort(ratios, ROUNDS, sizeof(ratios[0]), by_value);
	bars_open(&bars, "daemon_latency");
	bars_parameter(&bars, "rounds", ROUNDS);
	bars_parameter(&bars, "times", TIMES);
	bars_latency(&bars, "bare round trip", &all[0]);
	bars_latency(&bars, "hint to stop", &all[1]);
	bars_at_most(&bars, "hint to stop over round trip, p99, median of the rounds", ratios[ROUNDS / 2],
		     "times", BAR);
	bars_figure(&bars, "least of the rounds", ratios[0], "times");
	bars_figure(&bars, "most of the rounds", ratios[ROUNDS - 1], "times");
	return bars_close(&bars, file);
}

int main(int argc, char **argv)
{
	static struct gp_hist all[2];
	double ratios[ROUNDS];
	struct gp_random random;
	int echo, said, online;

	check(argc > 1, "usage: daemon_latency GPREEMPTD [JSON]");
	gp_random_init(&random, 1, 0);
	daemon_start(argv[1], "");
	echo = start_echo();
	said = start_offline();
	online = stand_in_open(GP_ROLE_AGENT, GP_CLASS_ONLINE);
	stand_in_tell_queues(online);
	(void)read_time(said);
	spin();
	spin();
	for (int i = 0; i < ROUNDS; i++)
		ratios[i] = one_round(echo, online, said, &random, all);
	return report(ratios, all, argv[2]);
}
