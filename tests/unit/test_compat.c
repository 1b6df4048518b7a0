// SPDX-License-Identifier: MIT
/* The notes' own calls, over a gpreemptd made of nothing. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fake_daemon.h"
#include "gpreempt/compat/gpreempt_poc_v2.h"

#define A 100 /* has queues 1, 2 and 3, of priorities 0, 7 and 11 */
#define B 200 /* has queue 1 as well, and 5, of priority 7 */

static struct fake_daemon fake;
static char folder[] = "/tmp/gpreempt-test-XXXXXX", place[64];

static int start(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.ndevices = 2;
	fake.caps = GP_CAP_INTERRUPT;
	fake_add(&fake, A, 1, 0x10000)->info.priority = 0;
	fake_add(&fake, A, 2, 0x20000);
	fake_add(&fake, A, 3, 0x30000)->info.priority = 11;
	fake_add(&fake, B, 1, 0x10000);
	fake_add(&fake, B, 5, 0x50000)->info.device = 1;
	fake.queues[4].info.gpu_id = 0xbeef;
	return fake_start(&fake, place) || gpreempt_poc_init();
}

static int stop(void **state)
{
	(void)state;
	gpreempt_poc_cleanup();
	fake_stop(&fake);
	return 0;
}

static int is_held(uint32_t pid, uint32_t id)
{
	for (size_t i = 0; i < fake.nqueues; i++)
		if (fake.queues[i].info.pid == pid && fake.queues[i].info.queue_id == id)
			return fake.queues[i].holder >= 0;
	return -1;
}

static int suspend(uint32_t id)
{
	return gpreempt_suspend_queues(&id, 1, 0);
}

static int resume(uint32_t id)
{
	return gpreempt_resume_queues(&id, 1);
}

/* How many a process has, and that becomes what was last found. */
static int find(pid_t pid)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	if (gpreempt_find_queues_by_process(pid, &queues, &n) < 0)
		return -1;
	gpreempt_free_queue_info(queues);
	return (int)n;
}

static void nothing_goes_before_init_and_after_cleanup(void **state)
{
	gpreempt_queue_info_t *queues;
	uint32_t n, id = 2;

	(void)state;
	gpreempt_poc_cleanup();
	assert_int_equal(gpreempt_get_all_queues(&queues, &n), -1);
	assert_int_equal(errno, ENOTCONN);
	assert_int_equal(gpreempt_suspend_queues(&id, 1, 0), -1);
	assert_int_equal(gpreempt_batch_unmap_queues(&id, 1, 0), -1);
	gpreempt_poc_cleanup(); /* one too many is none */
	assert_int_equal(gpreempt_poc_init(), 0);
	assert_int_equal(gpreempt_get_all_queues(&queues, &n), 0);
	gpreempt_free_queue_info(queues);
}

static void init_fails_where_there_is_neither_driver_nor_gpreemptd(void **state)
{
	(void)state;
	if (access("/dev/kfd", F_OK) == 0)
		return;
	setenv("GPREEMPT_SOCKET", "/nowhere/socket", 1);
	assert_int_equal(gpreempt_poc_init(), -1);
	assert_int_equal(errno, ENODEV);
	setenv("GPREEMPT_SOCKET", place, 1);
}

static void all_queues_are_told_with_what_is_known_of_them(void **state)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	(void)state;
	fake.queues[1].info.known = GP_KNOWN_QUEUE_ID;
	fake.queues[2].info.known = 0; /* without an id nobody can name it */
	assert_int_equal(gpreempt_get_all_queues(&queues, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(queues[0].queue_id, 1);
	assert_int_equal(queues[0].priority, 0);
	assert_int_equal(queues[0].gpu_id, 0x96ab);
	assert_int_equal(queues[0].process_id, A);
	assert_true(queues[0].is_active);
	assert_int_equal(queues[0].queue_address, 0x10000);
	assert_int_equal(queues[1].priority, UINT32_MAX);
	assert_int_equal(queues[1].queue_address, 0);
	gpreempt_free_queue_info(queues);
	assert_int_equal(gpreempt_get_all_queues(NULL, &n), -1);
	assert_int_equal(errno, EINVAL);
}

static void queues_are_found_by_priority_and_by_process(void **state)
{
	gpreempt_queue_info_t *queues = (void *)&fake;
	uint32_t n;

	(void)state;
	assert_int_equal(gpreempt_find_queues_by_priority(0, 5, &queues, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(queues[0].queue_id, 1);
	gpreempt_free_queue_info(queues);
	assert_int_equal(gpreempt_find_queues_by_priority(7, 7, &queues, &n), 0);
	assert_int_equal(n, 3);
	gpreempt_free_queue_info(queues);
	assert_int_equal(gpreempt_find_queues_by_priority(12, 15, &queues, &n), 0);
	assert_int_equal(n, 0);
	assert_null(queues);
	gpreempt_free_queue_info(queues);
	assert_int_equal(gpreempt_find_queues_by_priority(5, 0, &queues, &n), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(find(A), 3);
	assert_int_equal(find(B), 2);
	assert_int_equal(find(4711), 0);
	assert_int_equal(find(0), -1);
}

static void who_has_not_searched_finds_the_queue_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(suspend(2), 0);
	assert_int_equal(is_held(A, 2), 1);
	assert_int_equal(resume(2), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
}

static void an_id_of_two_processes_is_refused_until_one_is_searched_for(void **state)
{
	uint32_t ids[] = { 2, 1 };

	(void)state;
	assert_int_equal(gpreempt_suspend_queues(ids, 2, 0), -1);
	assert_int_equal(errno, ENOTUNIQ);
	assert_int_equal(fake.seen[GP_MSG_HOLD], 0);
	assert_int_equal(find(B), 2);
	assert_int_equal(suspend(1), 0);
	assert_int_equal(is_held(B, 1), 1);
	assert_int_equal(is_held(A, 1), 0);
}

static void an_unknown_id_is_refused_and_nothing_is_done(void **state)
{
	uint32_t ids[] = { 2, 99 };

	(void)state;
	assert_int_equal(gpreempt_suspend_queues(ids, 2, 0), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(gpreempt_resume_queues(ids, 2), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(fake.seen[GP_MSG_HOLD] + fake.seen[GP_MSG_RELEASE], 0);
}

static void none_and_the_same_twice_are_fine(void **state)
{
	uint32_t ids[] = { 2, 3, 2 };

	(void)state;
	assert_int_equal(gpreempt_suspend_queues(NULL, 0, 0), 0);
	assert_int_equal(gpreempt_resume_queues(NULL, 0), 0);
	assert_int_equal(gpreempt_batch_unmap_queues(NULL, 0, 0), 0);
	assert_int_equal(gpreempt_fast_remap_queues(NULL, 0), 0);
	assert_int_equal(gpreempt_suspend_queues(NULL, 1, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(gpreempt_suspend_queues(ids, 3, 1000), 0);
	assert_int_equal(fake.items[GP_MSG_HOLD], 2);
	assert_int_equal(gpreempt_suspend_queues(ids, 3, 1000), 0); /* and so is suspending twice */
	assert_int_equal(gpreempt_resume_queues(ids, 3), 0);
	assert_int_equal(gpreempt_resume_queues(ids, 3), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
}

static void a_queue_that_has_gone_is_told_and_the_others_are_done(void **state)
{
	uint32_t ids[] = { 2, 3 };

	(void)state;
	assert_int_equal(find(A), 3);
	fake.queues[1].status = -ENOENT;
	assert_int_equal(gpreempt_suspend_queues(ids, 2, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(is_held(A, 3), 1);
	fake.queues[1].status = -EPERM;
	assert_int_equal(suspend(2), -1);
	assert_int_equal(errno, EPERM);
}

static void a_queue_that_came_after_the_search_is_found(void **state)
{
	(void)state;
	assert_int_equal(find(A), 3);
	fake_add(&fake, A, 7, 0x70000);
	fake_add(&fake, B, 8, 0x80000);
	assert_int_equal(suspend(7), 0);
	assert_int_equal(is_held(A, 7), 1);
	assert_int_equal(suspend(8), -1); /* not of the process that was searched for */
	assert_int_equal(errno, ENOENT);
}

static void what_was_suspended_is_resumed_though_another_search_came_between(void **state)
{
	uint32_t ids[] = { 1, 2 };

	(void)state;
	assert_int_equal(find(A), 3);
	assert_int_equal(gpreempt_suspend_queues(ids, 2, 0), 0);
	assert_int_equal(find(B), 2);
	assert_int_equal(gpreempt_resume_queues(ids, 2), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
	assert_int_equal(fake.items[GP_MSG_RELEASE], 2);
}

static void of_two_suspended_with_one_id_the_last_search_says_which_is_resumed(void **state)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	(void)state;
	assert_int_equal(find(A), 3);
	assert_int_equal(suspend(1), 0);
	assert_int_equal(find(B), 2);
	assert_int_equal(suspend(1), 0);
	assert_int_equal(gpreempt_get_all_queues(&queues, &n), 0);
	gpreempt_free_queue_info(queues);
	assert_int_equal(resume(1), -1);
	assert_int_equal(errno, ENOTUNIQ);
	assert_int_equal(find(A), 3);
	assert_int_equal(resume(1), 0);
	assert_int_equal(is_held(A, 1), 0);
	assert_int_equal(is_held(B, 1), 1);
}

static void the_status_is_asked_anew(void **state)
{
	gpreempt_queue_info_t info;

	(void)state;
	assert_int_equal(gpreempt_get_queue_status(2, &info), 0);
	assert_true(info.is_active);
	assert_int_equal(suspend(2), 0);
	assert_int_equal(gpreempt_get_queue_status(2, &info), 0);
	assert_false(info.is_active);
	assert_int_equal(info.process_id, A);
	assert_int_equal(gpreempt_get_queue_status(1, &info), -1);
	assert_int_equal(errno, ENOTUNIQ);
	assert_int_equal(gpreempt_get_queue_status(99, &info), -1);
	assert_int_equal(errno, ENOENT);
	fake.queues[1].info.queue_id = 77; /* 2 is gone */
	assert_int_equal(gpreempt_get_queue_status(2, &info), -1);
	assert_int_equal(errno, ESRCH);
}

static void the_last_cleanup_gives_everything_back(void **state)
{
	(void)state;
	assert_int_equal(gpreempt_poc_init(), 0);
	assert_int_equal(suspend(2), 0);
	gpreempt_poc_cleanup();
	assert_int_equal(gpreempt_suspend_queues(&(uint32_t){ 3 }, 1, 0), 0);
	assert_int_equal(fake_held(&fake, 2), 2);
	gpreempt_poc_cleanup();
	assert_int_equal(fake_held(&fake, 0), 0);
	assert_int_equal(gpreempt_poc_init(), 0);
}

static void a_child_begins_anew_and_leaves_its_parents_suspensions_alone(void **state)
{
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(suspend(2), 0);
	child = fork();
	if (child == 0) {
		int good = suspend(3) == 0 && resume(3) == 0;

		gpreempt_poc_cleanup();
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fake_held(&fake, 1), 1);
	assert_int_equal(is_held(A, 2), 1);
	assert_int_equal(resume(2), 0);
}

static void a_gpreemptd_that_was_started_again_is_taken_up(void **state)
{
	(void)state;
	assert_int_equal(suspend(2), 0);
	fake.drop_at = GP_MSG_RELEASE;
	assert_int_equal(resume(2), -1); /* every try is dropped */
	assert_int_equal(errno, ECONNRESET);
	fake.drop_at = 0;
	assert_int_equal(suspend(2), 0);
	assert_int_equal(resume(2), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
}

/* What a batch prints to stderr in a process of its own; the text is static. */
static const char *said(int times)
{
	static char text[1024];
	int out[2], status;
	ssize_t n, len = 0;
	pid_t child;

	assert_int_equal(pipe(out), 0);
	child = fork();
	if (child == 0) {
		int good = dup2(out[1], 2) == 2;

		while (times--)
			good = good && gpreempt_batch_unmap_queues(&(uint32_t){ 2 }, 1, 100) == 0 &&
			       gpreempt_fast_remap_queues(&(uint32_t){ 2 }, 1) == 0;
		_exit(good ? 0 : 1);
	}
	close(out[1]);
	while ((n = read(out[0], text + len, sizeof(text) - 1 - (size_t)len)) > 0)
		len += n;
	text[len] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return text;
}

static void a_batch_without_the_kernels_call_goes_the_first_way_and_says_so_once(void **state)
{
	(void)state;
	assert_string_equal(said(3),
			    "gpreempt: this kernel has no batch call; using UPDATE_QUEUE through the "
			    "agents, one device cycle per queue\n");
	assert_int_equal(fake.seen[GP_MSG_HOLD], 3);
	assert_int_equal(fake.hold.way, GP_KFD_WAY_AUTO);
	setenv("GPREEMPT_QUIET", "1", 1);
	assert_string_equal(said(1), "");
	unsetenv("GPREEMPT_QUIET");
	strcpy(fake.queues[0].info.way, "dbg");
	assert_non_null(strstr(said(1), "SUSPEND_QUEUES"));
}

static void a_batch_call_that_the_kernel_has_is_used_in_silence(void **state)
{
	(void)state;
	fake.caps |= GP_CAP_BATCH;
	assert_string_equal(said(2), "");
	assert_int_equal(fake.seen[GP_MSG_HOLD], 2);
}

static void a_batch_call_that_fails_is_followed_by_the_first_way(void **state)
{
	(void)state;
	fake.caps |= GP_CAP_BATCH;
	fake.auto_status = -EIO;
	assert_non_null(strstr(said(1), "UPDATE_QUEUE"));
	assert_int_equal(fake.hold.way, GP_KFD_WAY_UPDATE);
	assert_int_equal(fake.seen[GP_MSG_RELEASE], 1);
}

static void a_reservation_names_the_gpu_by_the_drivers_id_or_by_its_number(void **state)
{
	(void)state;
	assert_int_equal(gpreempt_set_hqd_reservation(0xbeef, 60, 40), 0);
	assert_int_equal(fake.reserve.device, 1);
	assert_int_equal(fake.reserve.online_percent, 60);
	assert_int_equal(fake.reserve.offline_percent, 40);
	assert_int_equal(gpreempt_set_hqd_reservation(0, 10, 20), 0);
	assert_int_equal(fake.reserve.device, 0);
	assert_int_equal(gpreempt_set_hqd_reservation(2, 10, 20), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(gpreempt_set_hqd_reservation(0, 60, 50), -1);
	assert_int_equal(errno, EINVAL);
}

static void *hammer(void *arg)
{
	uint32_t id = *(uint32_t *)arg;
	intptr_t failed = 0;

	for (int i = 0; i < 50; i++) {
		gpreempt_queue_info_t *queues = NULL;
		uint32_t n;

		failed += gpreempt_suspend_queues(&id, 1, 0) != 0;
		failed += gpreempt_get_all_queues(&queues, &n) != 0 || n != fake.nqueues;
		gpreempt_free_queue_info(queues);
		failed += gpreempt_fast_remap_queues(&id, 1) != 0;
	}
	return (void *)failed;
}

static void any_thread_may_call(void **state)
{
	static uint32_t ids[] = { 2, 3, 5, 2, 3, 5 };
	pthread_t threads[6];
	void *failed;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &ids[i]), 0);
	for (size_t i = 0; i < 6; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(fake_held(&fake, 0), 0);
}

static int make_folder(void **state)
{
	(void)state;
	unsetenv("GPREEMPT_BACKEND");
	unsetenv("GPREEMPT_ROOT");
	unsetenv("GPREEMPT_QUIET");
	if (!mkdtemp(folder))
		return -1;
	snprintf(place, sizeof(place), "%s/socket", folder);
	return setenv("GPREEMPT_SOCKET", place, 1);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_goes_before_init_and_after_cleanup),
		cmocka_unit_test(init_fails_where_there_is_neither_driver_nor_gpreemptd),
		TEST(all_queues_are_told_with_what_is_known_of_them),
		TEST(queues_are_found_by_priority_and_by_process),
		TEST(who_has_not_searched_finds_the_queue_all_the_same),
		TEST(an_id_of_two_processes_is_refused_until_one_is_searched_for),
		TEST(an_unknown_id_is_refused_and_nothing_is_done),
		TEST(none_and_the_same_twice_are_fine),
		TEST(a_queue_that_has_gone_is_told_and_the_others_are_done),
		TEST(a_queue_that_came_after_the_search_is_found),
		TEST(what_was_suspended_is_resumed_though_another_search_came_between),
		TEST(of_two_suspended_with_one_id_the_last_search_says_which_is_resumed),
		TEST(the_status_is_asked_anew),
		TEST(the_last_cleanup_gives_everything_back),
		TEST(a_child_begins_anew_and_leaves_its_parents_suspensions_alone),
		TEST(a_gpreemptd_that_was_started_again_is_taken_up),
		TEST(a_batch_without_the_kernels_call_goes_the_first_way_and_says_so_once),
		TEST(a_batch_call_that_the_kernel_has_is_used_in_silence),
		TEST(a_batch_call_that_fails_is_followed_by_the_first_way),
		TEST(a_reservation_names_the_gpu_by_the_drivers_id_or_by_its_number),
		TEST(any_thread_may_call),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
