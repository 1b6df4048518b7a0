// SPDX-License-Identifier: MIT
/* What a service of systemd's reads of its environment. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"
#include "daemon/notify.h"

static void the_watchdog_is_fed_twice_as_often_as_it_bites_by_whom_it_waits_for_alone(void **state)
{
	char own[32];

	(void)state;
	assert_int_equal(gp_notify_watchdog(), 0);
	assert_int_equal(setenv("WATCHDOG_USEC", "10000000", 1), 0);
	assert_int_equal(gp_notify_watchdog(), 5 * GP_S);
	assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
	assert_int_equal(gp_notify_watchdog(), 0);
	snprintf(own, sizeof(own), "%d", (int)getpid());
	assert_int_equal(setenv("WATCHDOG_PID", own, 1), 0);
	assert_int_equal(gp_notify_watchdog(), 5 * GP_S);
}

static void a_socket_without_a_file_is_told_too(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const socklen_t family = sizeof(at.sun_family);
	socklen_t size = sizeof(at);
	char name[sizeof(at.sun_path) + 1], heard[16] = "";
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, family), 0); /* the kernel chooses a name */
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	snprintf(name, sizeof(name), "@%.*s", (int)(size - family - 1), at.sun_path + 1);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	gp_notify("READY=1");
	assert_int_equal(recv(fd, heard, sizeof(heard) - 1, 0), strlen("READY=1"));
	assert_string_equal(heard, "READY=1");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_watchdog_is_fed_twice_as_often_as_it_bites_by_whom_it_waits_for_alone),
		cmocka_unit_test(a_socket_without_a_file_is_told_too),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
