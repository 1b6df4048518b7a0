// SPDX-License-Identifier: MIT
/*
 * daemon_latency GPREEMPTD [JSON]: from an online client's hint to the stop that an offline agent reads,
 * against a packet's way to a second process and back, in turns, while two spinners of the lowest priority
 * keep the cores busy.  Both take two messages.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bars.h"
#include "base/random.h"
#include "stand_in.h"

#define TIMES 4000
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

int main(int argc, char **argv)
{
	static struct gp_hist bare, stop;
	struct gp_random random;
	struct bars bars;
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
	for (int i = 0; i < TIMES; i++) {
		pause_a_while(&random);
		gp_hist_add(&bare, round_trip(echo));
		pause_a_while(&random);
		gp_hist_add(&stop, hint_to_stop(online, said));
	}
	bars_open(&bars, "daemon_latency");
	bars_parameter(&bars, "times", TIMES);
	bars_latency(&bars, "bare round trip", &bare);
	bars_latency(&bars, "hint to stop", &stop);
	bars_at_most(&bars, "hint to stop over round trip, p99",
		     (double)gp_hist_quantile(&stop, 9900) / (double)gp_hist_quantile(&bare, 9900), "times",
		     BAR);
	return bars_close(&bars, argv[2]);
}
