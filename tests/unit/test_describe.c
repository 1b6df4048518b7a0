// SPDX-License-Identifier: MIT
/* What daemon and library both say of a queue and its process: trust, kind, origin. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/kfd/kind.h"
#include "backend/kfd/uapi.h"
#include "discover/describe.h"
#include "discover/trust.h"
#include "unit.h"

#define GROUP 990
#define ROOTS 0
#define ADMIN "00000000a82425fb"  /* with bit 21 */
#define DOCKER "00000000a80425fb" /* what Docker leaves to root: without it */

/* The lines of /proc/PID/status that matter, in its order. */
static const char *status(const char *uids, const char *gids, const char *groups, const char *caps)
{
	static char text[512];

	snprintf(
		text, sizeof(text),
		"Name:\ttrain\nPid:\t7\nUid:\t%s\nGid:\t%s\nFDSize:\t64\nGroups:\t%s \nNSpid:\t7\nCapPrm:\t" ADMIN
		"\nCapEff:\t%s\nThreads:\t1\n",
		uids, gids, groups, caps);
	return text;
}

static int trusted(const char *text, uint32_t daemon_uid)
{
	return gp_status_trusted(text, strlen(text), GROUP, daemon_uid);
}

#define NOBODY "65534\t65534\t65534\t65534"
#define ROOT "0\t0\t0\t0"

static void root_is_trusted_with_all_its_ids_and_its_right_to_administer(void **state)
{
	(void)state;
	assert_true(trusted(status(ROOT, ROOT, "0", ADMIN), ROOTS));
	assert_false(trusted(status(ROOT, ROOT, "0", DOCKER), ROOTS));
	assert_true(trusted(status(ROOT, ROOT, "990", DOCKER), ROOTS)); /* a member, whoever else it is */
	for (int i = 0; i < 4; i++) {
		char uids[] = "0\t0\t0\t0";

		uids[2 * i] = '5';
		assert_false(trusted(status(uids, ROOT, "0", ADMIN), ROOTS));
	}
	assert_false(trusted(status("5\t5\t5\t5", ROOT, "0", ADMIN), ROOTS));
}

static void a_member_is_trusted_by_its_effective_or_any_supplementary_group(void **state)
{
	(void)state;
	assert_true(trusted(status(NOBODY, NOBODY, "4 27 990", "0"), ROOTS));
	assert_true(trusted(status(NOBODY, NOBODY, "990 4", "0"), ROOTS));
	assert_true(trusted(status(NOBODY, "5\t990\t5\t5", "", "0"), ROOTS));
	assert_false(trusted(status(NOBODY, "990\t5\t990\t990", "", "0"), ROOTS));
	assert_false(trusted(status(NOBODY, NOBODY, "4 99 9900 1990", "0"), ROOTS));
	assert_false(trusted(status("990\t990\t990\t990", NOBODY, "", "0"), ROOTS));
	assert_false(gp_status_trusted(status(NOBODY, NOBODY, "4294967295", "0"), 200, -1, ROOTS));
}

static void a_users_own_daemon_trusts_that_user_and_roots_trusts_no_other(void **state)
{
	const char *own = status("1000\t1000\t1000\t1000", NOBODY, "", "0");

	(void)state;
	assert_true(trusted(own, 1000));
	assert_false(trusted(own, 1001));
	assert_false(trusted(own, ROOTS));
	assert_false(trusted(status("1000\t0\t0\t0", NOBODY, "", ADMIN), 1000));
}

static void a_text_that_is_cut_off_anywhere_makes_nobody_trusted(void **state)
{
	const char *member = status(NOBODY, NOBODY, "4 27 9901", "0");
	const char *in = strstr(member, "9901");

	(void)state;
	assert_false(gp_status_trusted(member, (size_t)(in - member) + 3, GROUP, ROOTS)); /* "990" */
	assert_false(gp_status_trusted("", 0, GROUP, ROOTS));
	assert_false(gp_status_trusted("Uid:\t0\n", 7, GROUP, ROOTS));
	assert_false(gp_status_trusted("Uid:\nGid:\nGroups:\nCapEff:\n", 26, GROUP, ROOTS));
}

static void a_process_is_trusted_by_its_own_status_and_one_that_is_not_there_is_not(void **state)
{
	(void)state;
	if (geteuid() != 0)
		assert_true(gp_proc_trusted("", (uint32_t)getpid(), -1, geteuid()));
	assert_int_equal(gp_proc_trusted("", (uint32_t)getpid(), getegid(), ROOTS),
			 gp_proc_trusted("/", (uint32_t)getpid(), getegid(), ROOTS));
	assert_false(gp_proc_trusted("", UINT32_MAX, GROUP, ROOTS));
	assert_false(gp_proc_trusted("/nowhere", 1, GROUP, ROOTS));
}

/* A child in a user namespace of its own, where it is root. */
static pid_t root_elsewhere(void)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER) == 0)
			(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		kill(child, SIGKILL);
		child = 0;
	}
	close(ready[0]);
	return child;
}

static void who_is_in_another_user_namespace_is_not_trusted(void **state)
{
	pid_t child = root_elsewhere();

	(void)state;
	assert_true(child); /* where no user may make one, there is nobody to be told apart */
	assert_true(gp_proc_trusted("", (uint32_t)getpid(), getegid(), ROOTS));
	assert_false(gp_proc_trusted("", (uint32_t)child, getegid(), ROOTS));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void a_type_that_nobody_knows_is_no_kind(void **state)
{
	(void)state;
	assert_int_equal(gp_kfd_kind(KFD_TYPE_COMPUTE), GP_KIND_COMPUTE);
	assert_int_equal(gp_kfd_kind(KFD_TYPE_AQL), GP_KIND_COMPUTE);
	assert_int_equal(gp_kfd_kind(KFD_TYPE_SDMA), GP_KIND_SDMA);
	assert_int_equal(gp_kfd_kind(KFD_TYPE_SDMA_BY_ENGINE), GP_KIND_SDMA);
	assert_int_equal(gp_kfd_kind(KFD_TYPE_SDMA_XGMI), GP_KIND_XGMI);
	assert_int_equal(gp_kfd_kind(5), GP_KIND_UNKNOWN);
	assert_int_equal(gp_kfd_kind(UINT32_MAX), GP_KIND_UNKNOWN); /* the snapshot, of one by engine */
}

static struct gp_found_queue queue = { .pid = 7,
				       .queue_id = 3,
				       .gpu_id = 38571,
				       .kind = GP_KIND_COMPUTE,
				       .priority = 7,
				       .active = 2,
				       .ring = 0x7f0000000000,
				       .from = { [GP_FIELD_ID] = GP_SOURCE_SYSFS,
						 [GP_FIELD_GPU] = GP_SOURCE_AGENT,
						 [GP_FIELD_KIND] = GP_SOURCE_SYSFS,
						 [GP_FIELD_RING] = GP_SOURCE_MQDS,
						 [GP_FIELD_ACTIVE] = GP_SOURCE_RLS } };

static void each_field_says_where_it_came_from_and_what_nobody_told_is_not_known(void **state)
{
	struct gp_queue_info info = { .queue = 5, .known = GP_KNOWN_PRIORITY, .place = "before" };

	(void)state;
	gp_describe_queue(&queue, NULL, 1, &info);
	assert_string_equal(info.from, "queue_id=sysfs gpu_id=agent kind=sysfs ring=mqds active=rls");
	assert_int_equal(info.known, GP_KNOWN_QUEUE_ID | GP_KNOWN_RING | GP_KNOWN_ACTIVE);
	assert_int_equal(info.pid, 7);
	assert_int_equal(info.queue_id, 3);
	assert_int_equal(info.gpu_id, 38571);
	assert_int_equal(info.kind, GP_KIND_COMPUTE);
	assert_int_equal(info.active, 1);
	assert_int_equal(info.ring, 0x7f0000000000);
	assert_string_equal(info.place, "");
	assert_int_equal(info.queue, 5); /* the caller's */
}

static void who_may_not_see_an_address_does_not_hear_that_there_is_one(void **state)
{
	struct gp_queue_info info = { 0 };

	(void)state;
	gp_describe_queue(&queue, NULL, 0, &info);
	assert_int_equal(info.ring, 0);
	assert_int_equal(info.known & GP_KNOWN_RING, 0);
	assert_null(strstr(info.from, "ring"));
}

static void a_container_is_told_by_its_name_and_a_pod_before_it(void **state)
{
	struct gp_found_client client = { .pid = 7, .container = "3f2a0123456789", .pod = "" };
	struct gp_queue_info info = { 0 };

	(void)state;
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, "container 3f2a0123456789");
	strcpy(client.container_name, "trainer");
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, "container trainer 3f2a01234567");
	strcpy(client.pod, "5c1e");
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, "pod trainer 3f2a01234567");
	client.container_name[0] = '\0';
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, "pod 5c1e 3f2a01234567");
	client.container[0] = '\0';
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, "pod 5c1e");
	gp_describe_queue(&queue, NULL, 1, &info);
	assert_string_equal(info.place, "");
}

static void a_name_too_long_to_be_told_says_so(void **state)
{
	struct gp_found_client client = { .container = "3f2a0123456789" };
	struct gp_queue_info info = { 0 };
	char wanted[128];

	(void)state;
	snprintf(client.container_name, sizeof(client.container_name), "%070d", 1);
	snprintf(wanted, sizeof(wanted), "container %070d 3f2a01234567", 1);
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, wanted);
	snprintf(client.container_name, sizeof(client.container_name), "%071d", 1);
	snprintf(wanted, sizeof(wanted), "container %067d... 3f2a01234567", 0);
	gp_describe_queue(&queue, &client, 1, &info);
	assert_string_equal(info.place, wanted);
}

static void a_device_is_told_with_its_id_and_its_address_on_the_bus_if_it_is_on_one(void **state)
{
	struct gp_found_device found = { .gpu_id = 38571, .domain = 2, .location = 0xc1 << 8 | 3 << 3 | 1 };
	struct gp_device_info info;

	(void)state;
	gp_describe_device(&found, 4, &info);
	assert_int_equal(info.device, 4);
	assert_int_equal(info.gpu_id, 38571);
	assert_string_equal(info.pci, "0002:c1:03.1");
	found.domain = found.location = 0;
	gp_describe_device(&found, 4, &info);
	assert_string_equal(info.pci, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_is_trusted_with_all_its_ids_and_its_right_to_administer),
		cmocka_unit_test(a_member_is_trusted_by_its_effective_or_any_supplementary_group),
		cmocka_unit_test(a_users_own_daemon_trusts_that_user_and_roots_trusts_no_other),
		cmocka_unit_test(a_text_that_is_cut_off_anywhere_makes_nobody_trusted),
		cmocka_unit_test(a_process_is_trusted_by_its_own_status_and_one_that_is_not_there_is_not),
		cmocka_unit_test(who_is_in_another_user_namespace_is_not_trusted),
		cmocka_unit_test(a_type_that_nobody_knows_is_no_kind),
		cmocka_unit_test(each_field_says_where_it_came_from_and_what_nobody_told_is_not_known),
		cmocka_unit_test(who_may_not_see_an_address_does_not_hear_that_there_is_one),
		cmocka_unit_test(a_container_is_told_by_its_name_and_a_pod_before_it),
		cmocka_unit_test(a_name_too_long_to_be_told_says_so),
		cmocka_unit_test(a_device_is_told_with_its_id_and_its_address_on_the_bus_if_it_is_on_one),
	};

	return cmocka_run_group_tests_name("describe", tests, NULL, NULL);
}
