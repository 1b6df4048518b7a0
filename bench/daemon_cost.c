// SPDX-License-Identifier: MIT
/*
 * daemon_cost GPREEMPTD [JSON]: gpreemptd's CPU time, memory and speed, with few clients and with many.  The
 * clients are stand-ins, each a process of its own.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bars.h"
#include "stand_in.h"

#define CLIENTS 1000
#define FEW 4
#define IDLE_S 10
#define HINTS_S 2
#define HINTS_PER_S 20000
#define WINDOWS 10
#define REQUESTS 500 /* of a window */
#define REQUESTS_PER_S 1000
#define REQUEST_NS (300 * GP_US)
#define BYTES 336 /* of a stop of 4 queues */
#define MANY "[limits]\npeers = 2000\nqueues = 8000\nplaces = 2000\n"
#define NO_CAP "[scheduler]\nlinger = 1us\nmax_stops_per_s = 1000000\n" /* each request costs both */

static double percent(uint64_t cpu_ns, uint64_t wall_ns)
{
	return 100.0 * (double)cpu_ns / (double)wall_ns;
}

/* Of a core, for so many seconds from now. */
static double daemon_percent(uint64_t seconds)
{
	uint64_t begin = clock_ns(), cpu = cpu_ns(daemon_process());

	wait_until(begin + seconds * GP_S);
	return percent(cpu_ns(daemon_process()) - cpu, clock_ns() - begin);
}

/* Many clients */

/* Comes when it is told to, says that it is known, and does what it is told. */
static void one_of_many(int go, int known)
{
	char byte = 0;
	int fd;

	(void)!read(go, &byte, 1);
	fd = stand_in_open(GP_ROLE_AGENT, GP_CLASS_OFFLINE);
	stand_in_tell_queues(fd);
	stand_in_sync(fd);
	check(write(known, &byte, 1) == 1, "pipe");
	while (1)
		stand_in_obey(fd, stand_in_hear(fd, GP_MSG_WANTS));
}

/* Once all are there, how long they take until the daemon knows them all. */
static uint64_t come(pid_t *clients)
{
	uint64_t begin;
	int go[2], known[2];
	char byte;

	check(pipe(go) == 0 && pipe(known) == 0, "pipe");
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = spawn();
		if (clients[i] == 0) {
			close(go[1]);
			one_of_many(go[0], known[1]);
		}
		daemon_show_queues(clients[i]);
	}
	close(known[1]);
	begin = clock_ns();
	close(go[1]);
	for (int i = 0; i < CLIENTS; i++)
		check(read(known[0], &byte, 1) == 1, "a client");
	close(go[0]);
	close(known[0]);
	return clock_ns() - begin;
}

static void many_clients(struct bars *bars, const char *daemon)
{
	static pid_t clients[CLIENTS];
	uint64_t took;

	daemon_start(daemon, MANY);
	took = come(clients);
	bars_at_most(bars, "1000 clients of 4 queues are known after", (double)took / GP_S, "s", 1);
	bars_figure(bars, "CPU with 1000 idle clients", daemon_percent(3), "% of a core");
	bars_at_most(bars, "memory with 1000 clients of 4 queues", (double)daemon_resident_bytes() / 1e6,
		     "MB", 10);
	for (int i = 0; i < CLIENTS; i++)
		end_child(clients[i]);
	daemon_stop();
}

/* Few clients */

static void give_hints(struct bars *bars)
{
	int fd = stand_in_open(GP_ROLE_AGENT, GP_CLASS_ONLINE);
	uint64_t begin, cpu, took;

	stand_in_tell_queues(fd);
	stand_in_sync(fd);
	begin = clock_ns();
	cpu = cpu_ns(daemon_process());
	for (uint64_t i = 0; i < HINTS_S * HINTS_PER_S; i++) {
		while (clock_ns() < begin + i * (GP_S / HINTS_PER_S))
			;
		stand_in_hint(fd, i % 2 ? GP_HINT_END : GP_HINT_BEGIN);
	}
	stand_in_sync(fd);
	took = clock_ns() - begin;
	bars_at_least(bars, "hints taken, of 20000 a second, to a hundredth",
		      (double)(HINTS_S * HINTS_PER_S) * GP_S / (double)took, "a second", 0.99 * HINTS_PER_S);
	bars_figure(bars, "CPU for them", percent(cpu_ns(daemon_process()) - cpu, took), "% of a core");
	close(fd);
}

static void few_clients(struct bars *bars, const char *daemon)
{
	pid_t clients[FEW];

	daemon_start(daemon, "");
	for (int i = 0; i < FEW; i++)
		clients[i] = stand_in_spawn(i % 2 ? GP_CLASS_OFFLINE : GP_CLASS_ONLINE);
	wait_until(clock_ns() + GP_S);
	bars_at_most(bars, "CPU with 4 idle clients", daemon_percent(IDLE_S), "% of a core", 0.1);
	give_hints(bars);
	for (int i = 0; i < FEW; i++)
		end_child(clients[i]);
	daemon_stop();
}

/* Requests */

static uint64_t suspends(int tool)
{
	static struct gp_msg msg = { .type = GP_MSG_STATS, .serial = 1 };

	stand_in_say(tool, &msg);
	return stand_in_hear(tool, GP_MSG_STATS_INFO)->stats_info.suspends;
}

static void make_requests(int online, void (*hint)(int fd, uint32_t what))
{
	uint64_t begin = clock_ns(), at;

	prctl(PR_SET_TIMERSLACK, 1);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		wait_until(begin + i * (GP_S / REQUESTS_PER_S));
		hint(online, GP_HINT_BEGIN);
		at = clock_ns(); /* which may be late, and then the next one is not early */
		wait_until(at + REQUEST_NS);
		hint(online, GP_HINT_END);
		wait_until(at + 2 * REQUEST_NS);
	}
}

static void send_packet(int fd, uint32_t what)
{
	char packet[BYTES] = "";

	(void)what;
	check(send(fd, packet, BYTES, MSG_NOSIGNAL) == BYTES, "send");
}

static int receive_packet(int fd)
{
	char packet[BYTES];

	return recv(fd, packet, BYTES, 0) == BYTES;
}

/* Until nobody sends any more. */
static void relay(int online, int offline)
{
	struct pollfd from[] = { { .fd = online, .events = POLLIN }, { .fd = offline, .events = POLLIN } };

	while (poll(from, 2, -1) > 0) {
		if (from[1].revents && !receive_packet(offline))
			_exit(0);
		if (!from[0].revents)
			continue;
		if (!receive_packet(online))
			_exit(0);
		send_packet(offline, 0);
	}
}

/* A process that gets the same messages, passes on the hints, and has nothing to decide; *ret: to it. */
static pid_t start_relay(int *ret)
{
	int online[2], offline[2];
	pid_t pid;

	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, online) == 0 &&
		      socketpair(AF_UNIX, SOCK_SEQPACKET, 0, offline) == 0,
	      "socketpair");
	pid = spawn();
	if (pid == 0)
		relay(online[1], offline[0]);
	if (spawn() == 0)
		while (receive_packet(offline[1]))
			send_packet(offline[1], 0);
	*ret = online[0];
	return pid;
}

/* What a process used meanwhile. */
static double requests_percent(pid_t pid, int fd, void (*hint)(int fd, uint32_t what))
{
	uint64_t begin = clock_ns(), cpu = cpu_ns(pid);

	make_requests(fd, hint);
	return percent(cpu_ns(pid) - cpu, clock_ns() - begin);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values)
{
	qsort(values, WINDOWS, sizeof(values[0]), by_value);
	return values[WINDOWS / 2];
}

/* In turns, and the median of each: what else runs on the machine disturbs both. */
static void compare_with_relay(struct bars *bars, int online)
{
	double used[WINDOWS], bare[WINDOWS], typical;
	int relayed;
	pid_t relay = start_relay(&relayed);

	for (int i = 0; i < WINDOWS; i++) {
		used[i] = requests_percent(daemon_process(), online, stand_in_hint);
		bare[i] = requests_percent(relay, relayed, send_packet);
	}
	end_child(relay);
	typical = median(used);
	bars_at_most(bars, "CPU at 1000 requests a second, 4 queues stopped for each", typical, "% of a core",
		     5);
	bars_figure(bars, "least of ten such", used[0], "% of a core");
	bars_figure(bars, "most of ten such", used[WINDOWS - 1], "% of a core");
	bars_figure(bars, "over the CPU of a bare relay", typical / median(bare), "times");
}

static void requests(struct bars *bars, const char *daemon)
{
	int online, tool;
	pid_t offline;
	uint64_t before;

	daemon_start(daemon, NO_CAP);
	offline = stand_in_spawn(GP_CLASS_OFFLINE);
	online = stand_in_open(GP_ROLE_AGENT, GP_CLASS_ONLINE);
	tool = stand_in_open(GP_ROLE_CONTROL, GP_CLASS_UNKNOWN);
	stand_in_tell_queues(online);
	stand_in_sync(online);
	before = suspends(tool);
	compare_with_relay(bars, online);
	stand_in_sync(online);
	/* Where everybody is late, a request may begin and end before it is read. */
	bars_at_least(bars, "queues stopped for each request, of 4",
		      (double)(suspends(tool) - before) / (WINDOWS * REQUESTS), "queues", 3.5);
	end_child(offline);
	close(online);
	close(tool);
	daemon_stop();
}

int main(int argc, char **argv)
{
	struct bars bars;

	check(argc > 1, "usage: daemon_cost GPREEMPTD [JSON]");
	bars_open(&bars, "daemon_cost");
	few_clients(&bars, argv[1]);
	requests(&bars, argv[1]);
	many_clients(&bars, argv[1]);
	return bars_close(&bars, argv[2]);
}
