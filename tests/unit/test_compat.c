// SPDX-License-Identifier: MIT
/* The notes' own calls, over a gpreemptd made of nothing. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fake_daemon.h"
#include "discover/discover.h"
#include "gpreempt/compat/gpreempt_poc_v2.h"
#include "lib/compat/session.h"

#define OURS NAMES_FIRST

#define A 100 /* has queues 1, 2 and 3, of priorities 0, 7 and 11 */
#define B 200 /* has queue 1 as well, and 5, of priority 7 */

static struct fake_daemon fake;
static char folder[] = "/tmp/gpreempt-test-XXXXXX", place[64];

static int start(void **state)
{
	(void)state;
	poc_forget_ids();
	memset(&fake, 0, sizeof(fake));
	fake.ndevices = 2;
	fake.caps = GP_CAP_INTERRUPT;
	fake_add(&fake, A, 1, 0x10000)->info.priority = 0;
	fake_add(&fake, A, 2, 0x20000);
	fake_add(&fake, A, 3, 0x30000)->info.priority = 11;
	fake_add(&fake, B, 1, 0x10000);
	fake_add(&fake, B, 5, 0x50000)->info.device = 1;
	fake.queues[4].info.gpu_id = 0xbeef;
	if (fake_start(&fake, place) < 0)
		return -1;
	if (gpreempt_poc_init() == 0)
		return 0;
	fake_stop(&fake); /* nobody tears down what was not set up */
	return -1;
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

static uint32_t ids[8]; /* that the last search returned */

static int take(gpreempt_queue_info_t *queues, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < 8; i++)
		ids[i] = queues[i].queue_id;
	gpreempt_free_queue_info(queues);
	return (int)n;
}

static int find(pid_t pid)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	return gpreempt_find_queues_by_process(pid, &queues, &n) < 0 ? -1 : take(queues, n);
}

static int find_all(void)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	return gpreempt_get_all_queues(&queues, &n) < 0 ? -1 : take(queues, n);
}

/* A call's result: -1 with this errno, and a sentence with this word. */
static void check_refused(int r, int error, const char *word)
{
	assert_int_equal(r, -1);
	assert_int_equal(errno, error);
	assert_non_null(strstr(gpreempt_poc_errmsg(), word));
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
	check_refused(gpreempt_poc_init(), ENODEV, "modprobe amdgpu");
	setenv("GPREEMPT_SOCKET", place, 1);
}

static void a_gpreemptd_that_refuses_is_told_in_its_words(void **state)
{
	(void)state;
	gpreempt_poc_cleanup();
	fake.error_at = GP_MSG_HELLO;
	fake.error = -EPERM;
	strcpy(fake.text, "this gpreemptd serves another user");
	check_refused(gpreempt_poc_init(), EPERM, fake.text);
	fake.error_at = 0;
	assert_int_equal(gpreempt_poc_init(), 0);
}

static void the_simulated_machine_can_be_asked_for(void **state)
{
	gpreempt_queue_info_t info;

	(void)state;
	gpreempt_poc_cleanup();
	setenv("GPREEMPT_BACKEND", "sim", 1);
	assert_int_equal(gpreempt_poc_init(), 0);
	unsetenv("GPREEMPT_BACKEND");
	assert_int_equal(find_all(), 5);
	assert_int_equal(ids[4], OURS + 4);
	assert_int_equal(gpreempt_suspend_queues(ids + 1, 4, 0), 0);
	assert_int_equal(gpreempt_get_queue_status(ids[4], &info), 0);
	assert_false(info.is_active);
	assert_int_equal(gpreempt_resume_queues(ids + 1, 4), 0);
}

static void a_suspension_that_is_refused_as_a_whole_holds_nothing(void **state)
{
	const struct gp_open_opts sim = { .size = sizeof(sim), .backend = "sim" };
	const struct gp_suspend_opts opts = { .size = sizeof(opts), .way = "update" };
	struct session s = { .users = 1, .owner = getpid() };
	const struct search all = { .any_priority = 1 };
	struct gp_queue_info *found;
	uint64_t stopped = 1;
	size_t n;

	(void)state;
	assert_int_equal(gp_ctx_open(&sim, &s.ctx), 0);
	assert_int_equal(session_search(&s, &all, &found, &n), 0);
	assert_int_equal(session_suspend(&s, &found[1].queue_id, 1, &opts, &stopped), -ENOTSUP);
	assert_int_equal(stopped, 0);
	assert_non_null(strstr(s.why, "update"));
	free(found);
	names_free(&s.names);
	s.names.ours = UINT32_MAX - NAMES_FIRST; /* no id is left */
	assert_int_equal(session_search(&s, &all, &found, &n), -EOVERFLOW);
	assert_non_null(strstr(s.why, "no ids"));
	session_close(&s);
	names_free(&s.names);
}

static void all_queues_are_told_with_what_is_known_of_them(void **state)
{
	gpreempt_queue_info_t *queues;
	uint32_t n;

	(void)state;
	fake.queues[1].info.known = GP_KNOWN_QUEUE_ID;
	fake.queues[2].info.known = 0; /* not even the driver's id: it gets one of ours */
	assert_int_equal(gpreempt_get_all_queues(&queues, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(queues[0].queue_id, OURS);
	assert_int_equal(queues[1].queue_id, 2);
	assert_int_equal(queues[2].queue_id, OURS + 1);
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

static void an_id_of_two_processes_is_refused_with_their_pids(void **state)
{
	uint32_t both[] = { 2, 1 };

	(void)state;
	check_refused(gpreempt_suspend_queues(both, 2, 0), ENOTUNIQ, "100");
	assert_non_null(strstr(gpreempt_poc_errmsg(), "200"));
	assert_int_equal(fake.seen[GP_MSG_HOLD], 0);
	assert_non_null(strstr(gpreempt_poc_errmsg(), "search"));
}

static void ids_stay_in_whatever_order_the_queues_are_told(void **state)
{
	uint64_t first = fake.queues[0].info.queue;

	(void)state;
	fake.queues[0].info.queue = fake.queues[4].info.queue;
	fake.queues[4].info.queue = first;
	assert_int_equal(find_all(), 5);
	assert_int_equal(ids[0], 5);
	assert_int_equal(ids[4], OURS + 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(find_all(), 5);
		assert_int_equal(ids[0], 5);
		assert_int_equal(ids[4], OURS + 1);
	}
}

/* As the notes do it: search offline, search online, suspend the offline ones. */
static void a_later_search_does_not_change_what_an_id_means(void **state)
{
	uint32_t offline;

	(void)state;
	assert_int_equal(find(A), 3);
	offline = ids[0];
	assert_int_equal(offline, 1);
	assert_int_equal(find(B), 2);
	assert_int_equal(ids[0], OURS);
	assert_int_equal(ids[1], 5);
	assert_int_equal(suspend(offline), 0);
	assert_int_equal(is_held(A, 1), 1);
	assert_int_equal(is_held(B, 1), 0);
	assert_int_equal(suspend(OURS), 0);
	assert_int_equal(is_held(B, 1), 1);
	assert_int_equal(resume(offline), 0);
	assert_int_equal(is_held(A, 1), 0);
	assert_int_equal(is_held(B, 1), 1);
	assert_int_equal(find(A), 3);
	assert_int_equal(ids[0], 1);
}

static void of_queues_found_together_none_has_an_id_that_is_another_ones_too(void **state)
{
	gpreempt_queue_info_t info;

	(void)state;
	assert_int_equal(find_all(), 5);
	assert_int_equal(ids[0], OURS);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[2], 3);
	assert_int_equal(ids[3], OURS + 1);
	assert_int_equal(ids[4], 5);
	assert_int_equal(gpreempt_suspend_queues(ids, 5, 0), 0);
	assert_int_equal(fake_held(&fake, 5), 5);
	assert_int_equal(gpreempt_get_queue_status(OURS + 1, &info), 0);
	assert_int_equal(info.queue_id, OURS + 1);
	assert_int_equal(info.process_id, B);
	check_refused(resume(OURS + 2), ENOENT, "1000002"); /* of ours, and not given yet */
}

static void an_id_whose_queue_has_gone_is_no_other_queues(void **state)
{
	gpreempt_queue_info_t info;

	(void)state;
	assert_int_equal(find(A), 3);
	fake.queues[1].hidden = 1;
	fake_add(&fake, B, 2, 0x20000);
	check_refused(suspend(2), ESRCH, "gone");
	check_refused(gpreempt_get_queue_status(2, &info), ESRCH, "gone");
	check_refused(resume(2), ESRCH, "gone");
	assert_int_equal(find(B), 3);
	assert_int_equal(ids[2], OURS + 1);
	assert_int_equal(suspend(OURS + 1), 0);
	assert_int_equal(is_held(B, 2), 1);
	check_refused(suspend(2), ESRCH, "gone");
	gpreempt_poc_cleanup();
	assert_int_equal(gpreempt_poc_init(), 0);
	check_refused(suspend(2), ESRCH, "gone");
}

static void an_unknown_id_is_refused_and_nothing_is_done(void **state)
{
	uint32_t some[] = { 2, 99 };

	(void)state;
	check_refused(gpreempt_suspend_queues(some, 2, 0), ENOENT, "99");
	check_refused(gpreempt_resume_queues(some, 2), ENOENT, "99");
	assert_int_equal(fake.seen[GP_MSG_HOLD] + fake.seen[GP_MSG_RELEASE], 0);
}

static void none_and_the_same_twice_are_fine(void **state)
{
	uint32_t twice[] = { 2, 3, 2 };

	(void)state;
	assert_int_equal(gpreempt_suspend_queues(NULL, 0, 0), 0);
	assert_int_equal(gpreempt_resume_queues(NULL, 0), 0);
	assert_int_equal(gpreempt_batch_unmap_queues(NULL, 0, 0), 0);
	assert_int_equal(gpreempt_fast_remap_queues(NULL, 0), 0);
	assert_int_equal(gpreempt_suspend_queues(NULL, 1, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(gpreempt_suspend_queues(twice, 3, 1000), 0);
	assert_int_equal(fake.items[GP_MSG_HOLD], 2);
	assert_int_equal(gpreempt_suspend_queues(twice, 3, 1000), 0); /* and so is suspending twice */
	assert_int_equal(gpreempt_resume_queues(twice, 3), 0);
	assert_int_equal(gpreempt_resume_queues(twice, 3), 0);
	assert_int_equal(fake_held(&fake, 0), 0);
}

static void a_queue_that_has_gone_is_told_and_the_others_are_done(void **state)
{
	uint32_t some[] = { 2, 3 };

	(void)state;
	assert_int_equal(find(A), 3);
	fake.queues[1].status = -EPERM;
	strcpy(fake.text, "only its owner may");
	check_refused(gpreempt_suspend_queues(some, 2, 0), EPERM, "queue 2, of process 100");
	assert_non_null(strstr(gpreempt_poc_errmsg(), "only its owner may"));
	assert_int_equal(is_held(A, 3), 1);
	fake.queues[1].status = -ENOENT;
	check_refused(gpreempt_suspend_queues(some, 2, 0), ESRCH, "id 2 has gone");
	assert_int_equal(resume(3), 0);
	check_refused(gpreempt_suspend_queues(some, 2, 0), ESRCH, "id 2 has gone");
	assert_int_equal(is_held(A, 3), 1);
}

static void an_id_that_no_search_returned_is_looked_up_each_time(void **state)
{
	(void)state;
	assert_int_equal(find(A), 3);
	fake_add(&fake, A, 7, 0x70000);
	assert_int_equal(suspend(7), 0);
	assert_int_equal(is_held(A, 7), 1);
	assert_int_equal(resume(7), 0);
	fake.queues[5].hidden = 1;
	fake_add(&fake, B, 7, 0x70000);
	assert_int_equal(suspend(7), 0);
	assert_int_equal(is_held(B, 7), 1);
}

static void what_was_suspended_keeps_its_id_until_it_is_resumed(void **state)
{
	(void)state;
	assert_int_equal(suspend(2), 0);
	fake_add(&fake, B, 2, 0x20000);
	assert_int_equal(find(B), 3);
	assert_int_equal(ids[2], OURS);
	assert_int_equal(resume(2), 0);
	assert_int_equal(is_held(A, 2), 0);
	check_refused(suspend(2), ENOTUNIQ, "200");
	assert_int_equal(suspend(3), 0);
	assert_int_equal(find(A), 3); /* now it is returned as well */
	assert_int_equal(ids[2], 3);
	assert_int_equal(resume(3), 0);
	fake_add(&fake, B, 3, 0x30000);
	assert_int_equal(suspend(3), 0);
	assert_int_equal(is_held(A, 3), 1);
}

/* An agent that connects again takes its queues off the list for a moment. */
static void what_is_suspended_and_not_listed_for_a_moment_is_resumed_under_its_id(void **state)
{
	(void)state;
	assert_int_equal(find(A), 3);
	assert_int_equal(gpreempt_suspend_queues(ids, 3, 0), 0);
	fake.queues[1].hidden = 1;
	assert_int_equal(find(A), 2);
	assert_int_equal(resume(2), 0);
	assert_int_equal(is_held(A, 2), 0);
	assert_int_equal(find(A), 2);
	check_refused(resume(2), ESRCH, "gone");
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
	check_refused(gpreempt_get_queue_status(1, &info), ENOTUNIQ, "200");
	check_refused(gpreempt_get_queue_status(99, &info), ENOENT, "99");
}

static void what_is_suspended_and_not_listed_any_more_has_no_status(void **state)
{
	gpreempt_queue_info_t info;

	(void)state;
	assert_int_equal(find(A), 3);
	assert_int_equal(gpreempt_suspend_queues(ids, 3, 0), 0);
	fake.queues[1].hidden = 1;
	check_refused(gpreempt_get_queue_status(2, &info), ESRCH, "gone");
	fake.queues[1].hidden = 0;
	assert_int_equal(gpreempt_get_queue_status(2, &info), 0);
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

/* A process that lives as long as the test. */
static pid_t live(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "60", NULL); /* and holds none of our connections */
		_exit(1);
	}
	return pid;
}

/* The same daemon, as it is after a restart: other handles, and nothing held. */
static void restart(void)
{
	struct fake_queue *before = fake.queues;
	size_t n = fake.nqueues;

	fake.queues = NULL;
	fake_stop(&fake);
	fake.nqueues = 0;
	for (size_t i = n; i--;) {
		struct gp_queue_info *q =
			&fake_add(&fake, before[i].info.pid, before[i].info.queue_id, before[i].info.ring)
				 ->info;

		q->known = before[i].info.known;
	}
	free(before);
	assert_int_equal(fake_start(&fake, place), 0);
}

static void after_gpreemptds_restart_an_id_means_the_same_queue_or_none(void **state)
{
	int sure = gp_sees_host_pids(); /* otherwise nobody can tell one process from the next */
	pid_t one = live(), other = live();

	(void)state;
	fake_add(&fake, (uint32_t)one, 8, 0x80000);
	fake_add(&fake, (uint32_t)one, 9, 0x90000);
	fake_add(&fake, (uint32_t)other, 8, 0x80000);
	fake.queues[6].info.known &= ~GP_KNOWN_RING;
	assert_int_equal(find(A), 3); /* no such process, and so none that can be known again */
	assert_int_equal(find(one), 2);
	assert_int_equal(find(other), 1);
	assert_int_equal(ids[0], OURS);
	restart();
	assert_int_equal(suspend(8), sure ? 0 : -1);
	assert_int_equal(is_held((uint32_t)one, 8), sure);
	assert_int_equal(suspend(OURS), sure ? 0 : -1);
	assert_int_equal(is_held((uint32_t)other, 8), sure);
	check_refused(suspend(9), ESRCH, "gone"); /* its ring is not known */
	check_refused(suspend(1), ESRCH, "gone");
	kill(one, SIGKILL);
	waitpid(one, NULL, 0);
	restart(); /* and gpreemptd has not noticed yet */
	check_refused(suspend(8), ESRCH, "gone");
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

static void a_child_means_the_same_queues_by_its_parents_ids_or_none(void **state)
{
	int status, sure = gp_sees_host_pids();
	pid_t one = live(), child;

	(void)state;
	fake_add(&fake, (uint32_t)one, 1, 0x10000);
	assert_int_equal(find(A), 3);
	assert_int_equal(find(one), 1);
	assert_int_equal(ids[0], OURS);
	child = fork();
	if (child == 0) {
		int good = (suspend(OURS) == 0) == sure && is_held((uint32_t)one, 1) >= 0;

		good = good && suspend(1) == -1 && errno == ESRCH; /* B has a queue 1 as well */
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fake_held(&fake, 0), 0);
	assert_int_equal(fake.items[GP_MSG_HOLD], sure);
	assert_int_equal(suspend(1), 0); /* its own context goes on */
	kill(one, SIGKILL);
	waitpid(one, NULL, 0);
}

static void ids_are_kept_of_the_queues_there_are_and_of_no_others(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		fake.nqueues = 0;
		for (uint32_t j = 0; j < 10; j++)
			fake_add(&fake, A + i, j, 0x10000 * (j + 1))->info.queue =
				FAKE_HANDLES + 10 * i + j + 1;
		assert_int_equal(find((pid_t)(A + i)), 10);
		assert_int_equal(ids[3], i ? OURS + 10 * (i - 1) + 3 : 3);
		assert_true(poc_known_ids() <= 10);
	}
	check_refused(suspend(3), ESRCH, "gone");
	check_refused(suspend(OURS + 17), ESRCH, "gone");
}

static void what_has_gone_while_it_was_suspended_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(suspend(2), 0);
	assert_int_equal(suspend(3), 0);
	assert_int_equal(poc_known_ids(), 2);
	fake.queues[1].hidden = 1;
	fake.queues[1].holder = -1;
	check_refused(resume(2), ESRCH, "gone");
	assert_int_equal(poc_known_ids(), 1);
	assert_int_equal(resume(3), 0);
	assert_int_equal(poc_known_ids(), 0);
}

static void what_a_gpreemptd_that_lies_was_asked_is_not_asked_again(void **state)
{
	(void)state;
	fake.lie_at = GP_MSG_HOLD;
	check_refused(suspend(2), EBADMSG, "does not speak our protocol");
	assert_int_equal(fake.seen[GP_MSG_HOLD], 1);
	fake.lie_at = 0;
	assert_int_equal(suspend(2), 0);
}

/* What a batch of one queue prints to stderr in a process of its own, and the remap; the text is static. */
static const char *said_of(uint32_t id, int want, int times)
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
			good = good && gpreempt_batch_unmap_queues(&id, 1, 100) == want &&
			       gpreempt_fast_remap_queues(&id, 1) == want;
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

static const char *said(int times)
{
	return said_of(2, 0, times);
}

static void a_batch_that_stopped_nothing_says_nothing(void **state)
{
	(void)state;
	assert_string_equal(said_of(99, -1, 1), "");
	assert_string_equal(said_of(1, -1, 1), "");
	fake.queues[1].status = -EPERM;
	fake.drop_at = GP_MSG_RELEASE;
	assert_string_equal(said_of(2, -1, 1), "");
	fake.drop_at = GP_MSG_HELLO;
	assert_string_equal(said_of(2, -1, 1), "");
	fake.drop_at = 0;
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
	setenv("GPREEMPT_QUIET", "0", 1);
	assert_non_null(strstr(said(1), "UPDATE_QUEUE"));
	unsetenv("GPREEMPT_QUIET");
	strcpy(fake.queues[1].info.way, "dbg"); /* of the one that is stopped */
	assert_string_equal(said(1),
			    "gpreempt: this kernel has no batch call; using the debugger's SUSPEND_QUEUES, "
			    "one device cycle per process\n");
	strcpy(fake.queues[1].info.way, "park");
	assert_string_equal(
		said(1),
		"gpreempt: this kernel has no batch call; using DISABLE_CHANNELS through the agents, "
		"one call per process\n");
	strcpy(fake.queues[1].info.way, "private");
	assert_string_equal(said(1),
			    "gpreempt: this kernel has no batch call; using its PREEMPT_QUEUE, one call per "
			    "queue\n");
}

static void a_batch_call_that_not_every_device_has_is_none(void **state)
{
	(void)state;
	fake.caps |= GP_CAP_BATCH;
	fake.first_only = GP_CAP_BATCH;
	assert_non_null(strstr(said(1), "UPDATE_QUEUE"));
	fake.ndevices = 0;
	assert_non_null(strstr(said(1), "UPDATE_QUEUE"));
}

static void whether_there_is_a_batch_call_is_asked_once(void **state)
{
	uint32_t id = 2, lists;

	(void)state;
	setenv("GPREEMPT_QUIET", "1", 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(find(A), 3); /* a queue that a search returned is not looked up */
		lists = fake.seen[GP_MSG_LIST];
		assert_int_equal(gpreempt_batch_unmap_queues(&id, 1, 0), 0);
		assert_int_equal(fake.seen[GP_MSG_LIST] - lists,
				 i ? 0 : 2); /* how many there are, and which */
	}
	unsetenv("GPREEMPT_QUIET");
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

static void a_queue_whose_gpu_is_not_known_names_no_gpu(void **state)
{
	(void)state;
	fake.queues[3].info.gpu_id = 0;
	fake.queues[3].info.device = 1;
	fake.queues[4].info.device = UINT32_MAX;
	assert_int_equal(gpreempt_set_hqd_reservation(0, 10, 20), 0);
	assert_int_equal(fake.reserve.device, 0);
	assert_int_equal(gpreempt_set_hqd_reservation(0xbeef, 10, 20), -1);
	assert_int_equal(errno, ENODEV);
}

static void a_gpu_without_a_queue_is_reserved_by_the_drivers_id(void **state)
{
	(void)state;
	fake.gpu_ids = 0xc000;
	for (size_t i = 0; i < fake.nqueues; i++)
		fake.queues[i].hidden = 1;
	assert_int_equal(gpreempt_set_hqd_reservation(0xc001, 60, 40), 0);
	assert_int_equal(fake.reserve.device, 1);
	assert_int_equal(gpreempt_set_hqd_reservation(1, 60, 40), 0);
	assert_int_equal(fake.reserve.device, 1);
	assert_int_equal(gpreempt_set_hqd_reservation(0xbeef, 60, 40), -1);
	assert_int_equal(errno, ENODEV);
	assert_non_null(strstr(gpreempt_poc_errmsg(), "48879"));
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
	static uint32_t some[] = { 2, 3, 5, 2, 3, 5 };
	pthread_t threads[6];
	void *failed;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, &some[i]), 0);
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
		TEST(a_gpreemptd_that_refuses_is_told_in_its_words),
		TEST(the_simulated_machine_can_be_asked_for),
		cmocka_unit_test(a_suspension_that_is_refused_as_a_whole_holds_nothing),
		TEST(all_queues_are_told_with_what_is_known_of_them),
		TEST(queues_are_found_by_priority_and_by_process),
		TEST(who_has_not_searched_finds_the_queue_all_the_same),
		TEST(an_id_of_two_processes_is_refused_with_their_pids),
		TEST(ids_stay_in_whatever_order_the_queues_are_told),
		TEST(a_later_search_does_not_change_what_an_id_means),
		TEST(of_queues_found_together_none_has_an_id_that_is_another_ones_too),
		TEST(an_id_whose_queue_has_gone_is_no_other_queues),
		TEST(an_unknown_id_is_refused_and_nothing_is_done),
		TEST(none_and_the_same_twice_are_fine),
		TEST(a_queue_that_has_gone_is_told_and_the_others_are_done),
		TEST(an_id_that_no_search_returned_is_looked_up_each_time),
		TEST(what_was_suspended_keeps_its_id_until_it_is_resumed),
		TEST(what_is_suspended_and_not_listed_for_a_moment_is_resumed_under_its_id),
		TEST(the_status_is_asked_anew),
		TEST(what_is_suspended_and_not_listed_any_more_has_no_status),
		TEST(the_last_cleanup_gives_everything_back),
		TEST(a_child_begins_anew_and_leaves_its_parents_suspensions_alone),
		TEST(a_gpreemptd_that_was_started_again_is_taken_up),
		TEST(after_gpreemptds_restart_an_id_means_the_same_queue_or_none),
		TEST(a_child_means_the_same_queues_by_its_parents_ids_or_none),
		TEST(ids_are_kept_of_the_queues_there_are_and_of_no_others),
		TEST(what_has_gone_while_it_was_suspended_is_forgotten),
		TEST(what_a_gpreemptd_that_lies_was_asked_is_not_asked_again),
		TEST(a_batch_that_stopped_nothing_says_nothing),
		TEST(a_batch_without_the_kernels_call_goes_the_first_way_and_says_so_once),
		TEST(a_batch_call_that_the_kernel_has_is_used_in_silence),
		TEST(a_batch_call_that_not_every_device_has_is_none),
		TEST(whether_there_is_a_batch_call_is_asked_once),
		TEST(a_batch_call_that_fails_is_followed_by_the_first_way),
		TEST(a_reservation_names_the_gpu_by_the_drivers_id_or_by_its_number),
		TEST(a_queue_whose_gpu_is_not_known_names_no_gpu),
		TEST(a_gpu_without_a_queue_is_reserved_by_the_drivers_id),
		TEST(any_thread_may_call),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
