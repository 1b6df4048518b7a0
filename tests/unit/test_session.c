// SPDX-License-Identifier: MIT
/* A device's scheduling session in gpreemptd, on a driver of the test's: what goes with which call, and what
 * comes back. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/session.h"

#define LEASE_NS (3 * GP_S)
#define MOST_TOLD 16

/* The driver */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	int opens, closes, sets, renews, settings; /* calls that were made */
	int opened;                                /* what open() returns; a descriptor or -errno */
	int stale;                                 /* so many calls find the session ended */
	int error;                                 /* of every set() */
	int holds;                                 /* calls wait */
	uint32_t last_n, last_status;              /* of set() */
	struct kfd_session_args setting; /* the last one, and how many calls of set() were before it */
	int sets_before;
	struct kfd_session_queue last[KFD_SESSION_MAX_QUEUES];
	uint64_t lease_ns;
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };

static int is_stale(void)
{
	return driver.stale && driver.stale--;
}

static int fake_open(uint64_t lease_ns)
{
	int r;

	pthread_mutex_lock(&driver.lock);
	driver.opens++;
	driver.lease_ns = lease_ns;
	r = driver.opened;
	pthread_mutex_unlock(&driver.lock);
	return r;
}

static int fake_set(int fd, struct kfd_session_queue *queues, uint32_t n, uint32_t *ret_cycles)
{
	int r;

	(void)fd;
	pthread_mutex_lock(&driver.lock);
	driver.sets++;
	driver.last_n = n;
	memcpy(driver.last, queues, n * sizeof(*queues));
	pthread_cond_broadcast(&driver.moved);
	while (driver.holds)
		pthread_cond_wait(&driver.moved, &driver.lock);
	r = is_stale() ? -ESTALE : driver.error;
	for (uint32_t i = 0; r == 0 && i < n; i++)
		queues[i].status = driver.last_status;
	*ret_cycles = 1;
	pthread_mutex_unlock(&driver.lock);
	return r;
}

static int fake_renew(int fd)
{
	int r;

	(void)fd;
	pthread_mutex_lock(&driver.lock);
	driver.renews++;
	r = is_stale() ? -ESTALE : 0;
	pthread_mutex_unlock(&driver.lock);
	return r;
}

static int fake_tell(int fd, struct kfd_session_args *setting)
{
	int r;

	(void)fd;
	pthread_mutex_lock(&driver.lock);
	driver.settings++;
	driver.setting = *setting;
	driver.sets_before = driver.sets;
	r = is_stale() ? -ESTALE : driver.error;
	pthread_mutex_unlock(&driver.lock);
	return r;
}

static void fake_close(int fd)
{
	(void)fd;
	pthread_mutex_lock(&driver.lock);
	driver.closes++;
	pthread_cond_broadcast(&driver.moved);
	pthread_mutex_unlock(&driver.lock);
}

static const struct gp_session_ops fake = {
	.open = fake_open, .set = fake_set, .tell = fake_tell, .renew = fake_renew, .close = fake_close
};

static void wait_for_sets(int n)
{
	pthread_mutex_lock(&driver.lock);
	while (driver.sets < n)
		pthread_cond_wait(&driver.moved, &driver.lock);
	pthread_mutex_unlock(&driver.lock);
}

static void let_go(void)
{
	pthread_mutex_lock(&driver.lock);
	driver.holds = 0;
	pthread_cond_broadcast(&driver.moved);
	pthread_mutex_unlock(&driver.lock);
}

/* The daemon's side */

struct told {
	uint32_t serial, n, cycles, status_of_first;
	int status, has_ended;
};

static struct gp_loop loop;
static struct gp_session *session;
static struct told told[MOST_TOLD];
static size_t ntold;

static void hear(void *arg, struct gp_session_batch *b)
{
	assert_ptr_equal(arg, &driver);
	assert_true(ntold < MOST_TOLD);
	told[ntold++] = (struct told){ .serial = b->serial,
				       .n = b->n,
				       .cycles = b->cycles,
				       .status_of_first = b->n ? b->items[0].entry.status : 0,
				       .status = b->status,
				       .has_ended = b->has_ended };
}

static void wait_for(size_t n)
{
	while (ntold < n)
		assert_int_equal(gp_loop_step(&loop), 0);
}

static void give(uint32_t serial, uint32_t n, uint32_t pid)
{
	struct gp_session_batch *b = gp_session_batch(n);

	assert_non_null(b);
	b->serial = serial;
	for (uint32_t i = 0; i < n; i++)
		b->items[i].entry =
			(struct kfd_session_queue){ .pid = pid, .queue_id = i, .want = KFD_SESSION_STOP };
	gp_session_give(session, b);
}

static void give_setting(uint32_t gpu_id)
{
	struct gp_session_batch *b = gp_session_batch(0);

	assert_non_null(b);
	b->setting = (struct kfd_session_args){ .op = KFD_SESSION_SET_RESERVATION,
						.reservation = { .gpu_id = gpu_id } };
	gp_session_give(session, b);
}

static int begin(void **state)
{
	(void)state;
	driver.opens = driver.closes = driver.sets = driver.renews = driver.settings = 0;
	driver.stale = driver.error = driver.holds = 0;
	driver.opened = 7;
	driver.last_status = KFD_SESSION_DONE;
	ntold = 0;
	return gp_loop_open(&loop) < 0 || gp_session_new(&loop, &fake, LEASE_NS, hear, &driver, &session) < 0;
}

static int end(void **state)
{
	(void)state;
	let_go();
	gp_session_free(session);
	gp_loop_close(&loop);
	return 0;
}

static void it_is_opened_with_its_lease_and_closed_in_the_end(void **state)
{
	(void)state;
	wait_for(1);
	assert_int_equal(told[0].status, 0);
	assert_int_equal(told[0].n, 0);
	assert_int_equal(driver.opens, 1);
	assert_true(driver.lease_ns == LEASE_NS);
	gp_session_free(session);
	assert_int_equal(driver.closes, 1);
	assert_int_equal(gp_session_new(&loop, &fake, LEASE_NS, hear, &driver, &session), 0);
}

static void one_that_is_ended_closes_before_it_is_waited_for(void **state)
{
	(void)state;
	wait_for(1);
	gp_session_end(session);
	gp_session_end(NULL);
	pthread_mutex_lock(&driver.lock);
	while (!driver.closes)
		pthread_cond_wait(&driver.moved, &driver.lock);
	pthread_mutex_unlock(&driver.lock);
}

static void one_that_cannot_be_opened_says_why_and_is_tried_again(void **state)
{
	(void)state;
	wait_for(1);
	gp_session_free(session);
	driver.opened = -EPERM;
	assert_int_equal(gp_session_new(&loop, &fake, LEASE_NS, hear, &driver, &session), 0);
	wait_for(2);
	assert_int_equal(told[1].status, -EPERM);
	give(1, 1, 100);
	wait_for(3);
	assert_int_equal(told[2].status, -EPERM);
	assert_int_equal(driver.sets, 0);
	pthread_mutex_lock(&driver.lock);
	driver.opened = 8;
	pthread_mutex_unlock(&driver.lock);
	give(2, 1, 100);
	wait_for(4);
	assert_int_equal(told[3].status, 0);
	assert_int_equal(driver.sets, 1);
}

static void a_batch_is_one_call_and_comes_back_with_what_became_of_it(void **state)
{
	(void)state;
	wait_for(1);
	driver.last_status = KFD_SESSION_BUSY;
	give(3, 24, 100);
	wait_for(2);
	assert_int_equal(driver.sets, 1);
	assert_int_equal(driver.last_n, 24);
	assert_int_equal(driver.last[23].queue_id, 23);
	assert_int_equal(told[1].serial, 3);
	assert_int_equal(told[1].cycles, 1);
	assert_int_equal(told[1].status_of_first, KFD_SESSION_BUSY);
}

static void what_comes_while_the_gpu_does_not_answer_goes_with_the_next_call(void **state)
{
	(void)state;
	wait_for(1);
	driver.holds = 1;
	give(1, 2, 100);
	wait_for_sets(1);
	give(2, 3, 200);
	give(3, 4, 300);
	assert_int_equal(ntold, 1);
	let_go();
	wait_for(4);
	assert_int_equal(driver.sets, 2);
	assert_int_equal(driver.last_n, 7);
	assert_int_equal(driver.last[0].pid, 200);
	assert_int_equal(driver.last[3].pid, 300);
	assert_int_equal(told[1].serial, 1);
	assert_int_equal(told[2].serial, 2);
	assert_int_equal(told[2].cycles, 1);
	assert_int_equal(told[3].serial, 3);
	assert_int_equal(told[3].cycles, 0); /* counted once */
}

static void no_call_has_more_entries_than_the_driver_takes(void **state)
{
	(void)state;
	wait_for(1);
	driver.holds = 1;
	give(1, 1, 100);
	wait_for_sets(1);
	give(2, KFD_SESSION_MAX_QUEUES, 200);
	give(3, 1, 300);
	let_go();
	wait_for(4);
	assert_int_equal(driver.sets, 3);
	assert_int_equal(driver.last_n, 1);
}

static void a_setting_is_a_call_of_its_own_in_its_turn(void **state)
{
	(void)state;
	wait_for(1);
	driver.holds = 1;
	give(1, 1, 100);
	wait_for_sets(1);
	give(2, 2, 200);
	give_setting(17);
	give(3, 3, 300);
	let_go();
	wait_for(5);
	assert_int_equal(driver.settings, 1);
	assert_int_equal(driver.setting.reservation.gpu_id, 17);
	assert_int_equal(driver.sets_before, 2);
	assert_int_equal(driver.sets, 3);
	assert_int_equal(driver.last_n, 3);
	assert_int_equal(driver.renews, 1); /* that opened it */
}

static void a_setting_that_the_driver_refuses_says_why(void **state)
{
	(void)state;
	wait_for(1);
	driver.error = -EBUSY;
	give_setting(17);
	wait_for(2);
	assert_int_equal(told[1].status, -EBUSY);
	assert_false(told[1].has_ended);
}

static void a_setting_of_a_session_that_has_ended_is_told_the_next_one(void **state)
{
	(void)state;
	wait_for(1);
	driver.stale = 1;
	give_setting(17);
	wait_for(2);
	assert_true(told[1].has_ended);
	assert_int_equal(told[1].status, 0);
	assert_int_equal(driver.settings, 2);
	assert_int_equal(driver.opens, 2);
}

static void a_session_whose_lease_has_ended_is_opened_again_and_told_so(void **state)
{
	(void)state;
	wait_for(1);
	driver.stale = 1;
	give(1, 2, 100);
	wait_for(2);
	assert_int_equal(told[1].status, 0);
	assert_true(told[1].has_ended);
	assert_int_equal(told[1].status_of_first, KFD_SESSION_DONE);
	assert_int_equal(driver.opens, 2);
	assert_int_equal(driver.closes, 1);
	assert_int_equal(driver.sets, 2);
	give(2, 2, 100);
	wait_for(3);
	assert_false(told[2].has_ended);
}

static void a_lease_that_ended_is_found_when_it_is_renewed(void **state)
{
	(void)state;
	wait_for(1);
	driver.stale = 1;
	gp_session_renew(session);
	wait_for(2);
	assert_true(told[1].has_ended);
	assert_int_equal(told[1].n, 0);
	assert_int_equal(driver.opens, 2);
}

static void nothing_is_renewed_while_a_call_is_under_way(void **state)
{
	(void)state;
	wait_for(1);
	driver.holds = 1;
	give(1, 1, 100);
	wait_for_sets(1);
	for (int i = 0; i < 5; i++)
		gp_session_renew(session);
	let_go();
	wait_for(2);
	give(2, 1, 100);
	wait_for(3);
	assert_int_equal(driver.renews, 1); /* when it was opened */
}

static void a_call_that_fails_fails_for_all_that_went_with_it(void **state)
{
	(void)state;
	wait_for(1);
	driver.error = -ENOMEM;
	give(1, 2, 100);
	wait_for(2);
	assert_int_equal(told[1].status, -ENOMEM);
	assert_false(told[1].has_ended);
	assert_int_equal(driver.opens, 1);
}

/* What the driver's words mean */

static int means(uint32_t status, uint32_t state, const char *word)
{
	const struct kfd_session_queue entry = { .status = status, .state = state };
	const char *why;
	int r = gp_session_status(&entry, &why);

	if (!word)
		assert_null(why);
	else
		assert_non_null(strstr(why, word));
	return r;
}

static void each_status_has_its_error_and_its_words(void **state)
{
	(void)state;
	assert_int_equal(means(KFD_SESSION_DONE, KFD_SESSION_STOPPED, NULL), 0);
	assert_int_equal(means(KFD_SESSION_NO_CHANGE, 0, NULL), 0);
	assert_int_equal(means(KFD_SESSION_NOT_FOUND, 0, "no such queue"), -ENOENT);
	assert_int_equal(means(KFD_SESSION_DESTROYED, 0, "destroyed"), -ENOENT);
	assert_int_equal(means(KFD_SESSION_BUSY, 0, "another"), -EBUSY);
	assert_int_equal(means(KFD_SESSION_UNSUPPORTED, 0, "save"), -EOPNOTSUPP);
	assert_int_equal(means(KFD_SESSION_FAILED, 0, "answer"), -EIO);
	assert_int_equal(means(KFD_SESSION_DENIED, 0, "let"), -EPERM);
	assert_int_equal(means(99, 0, "does not know"), -EPROTO);
}

static void a_queue_that_was_reset_counts_as_stopped_whatever_tells_it(void **state)
{
	(void)state;
	assert_int_equal(means(KFD_SESSION_RESET, KFD_SESSION_WAS_RESET, "reset"), 0);
	assert_int_equal(means(KFD_SESSION_NO_CHANGE, KFD_SESSION_WAS_RESET, "reset"), 0);
	assert_int_equal(means(KFD_SESSION_FAILED, KFD_SESSION_WAS_RESET, "answer"), -EIO);
}

static void a_driver_without_the_file_has_no_sessions(void **state)
{
	char root[] = "/tmp/gpreempt-session-XXXXXX", path[256];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(gp_session_version(root), 0);
	snprintf(path, sizeof(path), "mkdir -p %s/sys/class/kfd/kfd && echo 3 >%s" KFD_SESSION_VERSION_FILE,
		 root, root);
	assert_int_equal(system(path), 0);
	assert_int_equal(gp_session_version(root), 3);
	snprintf(path, sizeof(path), "echo new >%s" KFD_SESSION_VERSION_FILE, root);
	assert_int_equal(system(path), 0);
	assert_int_equal(gp_session_version(root), 0);
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(it_is_opened_with_its_lease_and_closed_in_the_end),
		WITH(one_that_is_ended_closes_before_it_is_waited_for),
		WITH(one_that_cannot_be_opened_says_why_and_is_tried_again),
		WITH(a_batch_is_one_call_and_comes_back_with_what_became_of_it),
		WITH(what_comes_while_the_gpu_does_not_answer_goes_with_the_next_call),
		WITH(no_call_has_more_entries_than_the_driver_takes),
		WITH(a_setting_is_a_call_of_its_own_in_its_turn),
		WITH(a_setting_that_the_driver_refuses_says_why),
		WITH(a_setting_of_a_session_that_has_ended_is_told_the_next_one),
		WITH(a_session_whose_lease_has_ended_is_opened_again_and_told_so),
		WITH(a_lease_that_ended_is_found_when_it_is_renewed),
		WITH(nothing_is_renewed_while_a_call_is_under_way),
		WITH(a_call_that_fails_fails_for_all_that_went_with_it),
		cmocka_unit_test(each_status_has_its_error_and_its_words),
		cmocka_unit_test(a_queue_that_was_reset_counts_as_stopped_whatever_tells_it),
		cmocka_unit_test(a_driver_without_the_file_has_no_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
