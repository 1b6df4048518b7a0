// SPDX-License-Identifier: MIT
/* The GPUs that gpreemptd knows: who may tell of how many simulated ones. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/account.h"
#include "daemon/devices.h"

#define ALL_USERS 16 /* what gpreemptd(8) says: all users but root together */

static int tell(struct gp_devices *d, uint64_t account, uint32_t gpu, struct gp_device **ret)
{
	struct gp_device_info info = { .size = sizeof(info), .backend = "sim", .device = gpu };
	const uint64_t no_key[2] = { 0, 0 };

	return gp_devices_told(d, account, &info, no_key, ret);
}

/* How many of n more it may tell of. */
static uint32_t tell_many(struct gp_devices *d, uint64_t account, uint32_t n)
{
	struct gp_device *one;
	uint32_t told = 0;

	for (uint32_t i = 0; i < n; i++) {
		int r = tell(d, account, i, &one);

		told += r == 0;
		assert_true(r == 0 || r == -ENOSPC);
	}
	return told;
}

static void roots_simulated_devices_are_besides_those_of_users(void **state)
{
	struct gp_devices d = { 0 };

	(void)state;
	assert_int_equal(tell_many(&d, GP_ACCOUNT_ROOT, 20), GP_MOST_TOLD);
	assert_int_equal(tell_many(&d, 1000, 20), GP_MOST_TOLD);
	assert_int_equal(tell_many(&d, 1001, 20), ALL_USERS - GP_MOST_TOLD);
	assert_int_equal(tell_many(&d, 1002, 1), 0);
	gp_devices_free(&d);
}

static void users_who_have_all_of_theirs_leave_roots(void **state)
{
	struct gp_devices d = { 0 };

	(void)state;
	assert_int_equal(tell_many(&d, 1000, 20) + tell_many(&d, 1001, 20), ALL_USERS);
	assert_int_equal(tell_many(&d, GP_ACCOUNT_ROOT, 20), GP_MOST_TOLD);
	gp_devices_free(&d);
}

static void a_device_that_left_makes_room_for_another(void **state)
{
	struct gp_devices d = { 0 };
	struct gp_device *first, *again;

	(void)state;
	assert_int_equal(tell(&d, 1000, 77, &first), 0);
	assert_int_equal(tell_many(&d, 1000, 20), GP_MOST_TOLD - 1);
	assert_int_equal(tell(&d, 1000, 77, &again), 0); /* one more agent of one that is there */
	assert_ptr_equal(again, first);
	gp_devices_left(first);
	assert_int_equal(tell(&d, 1000, 78, &again), -ENOSPC);
	gp_devices_left(first);
	assert_int_equal(tell(&d, 1000, 78, &again), 0);
	gp_devices_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_simulated_devices_are_besides_those_of_users),
		cmocka_unit_test(users_who_have_all_of_theirs_leave_roots),
		cmocka_unit_test(a_device_that_left_makes_room_for_another),
	};

	return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
