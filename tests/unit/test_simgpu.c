// SPDX-License-Identifier: MIT
/* What a simulated GPU makes of what gpreemptd says to it: here, the other end of a pair of sockets. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simgpu/known.h"

#define NOW 7000000000ull
#define FLOOD 100u /* more than are heard in one turn */

static struct gp_simknown known;
static struct gp_device_info devices[2] = { { .size = sizeof(devices[0]) }, { .size = sizeof(devices[0]) } };
static const uint64_t key[2] = { 5, UINT64_MAX };
static char said[256];
static int daemons_end;

static void take_down(const char *line)
{
	snprintf(said, sizeof(said), "%s", line);
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	said[0] = '\0';
	memset(&known, 0, sizeof(known));
	setenv("GPREEMPT_SOCKET", "/nowhere/socket", 1);
	gp_simknown_init(&known, devices, 2, key, take_down);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	known.conn.fd = pair[0];
	known.is_welcome = 1;
	daemons_end = pair[1];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	gp_simknown_close(&known);
	if (daemons_end >= 0)
		close(daemons_end);
	return 0;
}

static void say(uint32_t type, uint32_t serial, const char *text)
{
	static struct gp_msg msg;
	unsigned char packet[1024];
	int size;

	memset(&msg, 0, sizeof(msg));
	msg.type = type;
	msg.serial = serial;
	if (type == GP_MSG_ERROR) {
		msg.error.status = -ENOSPC;
		snprintf(msg.error.text, sizeof(msg.error.text), "%s", text);
	}
	size = gp_wire_encode(&msg, 0, packet, sizeof(packet));
	assert_true(size > 0);
	assert_int_equal(send(daemons_end, packet, (size_t)size, MSG_DONTWAIT), size);
}

static void a_refusal_names_the_device_that_it_is_about(void **state)
{
	(void)state;
	say(GP_MSG_ERROR, 2, "enough");
	gp_simknown_turn(&known, NOW);
	assert_string_equal(said, "gpreemptd does not know device 1: enough");
}

static void a_refusal_that_is_about_no_device_names_none(void **state)
{
	(void)state;
	for (uint32_t serial = 0; serial <= 3; serial += 3) {
		said[0] = '\0';
		say(GP_MSG_ERROR, serial, "enough");
		gp_simknown_turn(&known, NOW);
		assert_string_equal(said, "gpreemptd refuses: enough");
	}
}

static void a_daemon_that_says_much_is_heard_in_more_than_one_turn(void **state)
{
	char c;

	(void)state;
	for (uint32_t i = 0; i < FLOOD; i++)
		say(GP_MSG_PING, 0, "");
	gp_simknown_turn(&known, NOW);
	assert_true(known.conn.fd >= 0);
	assert_int_equal(recv(known.conn.fd, &c, 1, MSG_DONTWAIT | MSG_PEEK), 1);
	gp_simknown_turn(&known, NOW);
	assert_true(recv(known.conn.fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0);
	assert_true(known.conn.fd >= 0);
}

static void one_that_says_much_but_no_welcome_is_lost_in_time(void **state)
{
	(void)state;
	known.is_welcome = 0;
	for (uint32_t i = 0; i < FLOOD; i++)
		say(GP_MSG_PING, 0, "");
	gp_simknown_turn(&known, NOW);
	assert_int_equal(known.conn.fd, -1);
}

static void a_daemon_that_goes_is_looked_for_a_while_after_the_turn_that_saw_it(void **state)
{
	(void)state;
	close(daemons_end);
	daemons_end = -1;
	gp_simknown_turn(&known, NOW);
	assert_int_equal(known.conn.fd, -1);
	assert_in_range(gp_simknown_next_ns(&known), NOW + 1, NOW + 1000000000);
}

#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_DAEMON(a_refusal_names_the_device_that_it_is_about),
		WITH_DAEMON(a_refusal_that_is_about_no_device_names_none),
		WITH_DAEMON(a_daemon_that_says_much_is_heard_in_more_than_one_turn),
		WITH_DAEMON(one_that_says_much_but_no_welcome_is_lost_in_time),
		WITH_DAEMON(a_daemon_that_goes_is_looked_for_a_while_after_the_turn_that_saw_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
