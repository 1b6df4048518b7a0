// SPDX-License-Identifier: MIT
/* The own-process part of the kfd backend, on a driver made of a table. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/kfd/own.h"
#include "backend/kfd/uapi.h"
#include "fake_kfd.h"

#define MS 1000000ull

static struct gp_own *own;
static int fd;
static uint64_t pointers[2 * MOST];

static int set_up(void **state)
{
	(void)state;
	fake_reset();
	memset(pointers, 0, sizeof(pointers));
	setenv("GPREEMPT_KFD", FILE_OF_DRIVER, 1);
	fd = open(FILE_OF_DRIVER, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -1 : gp_kfd_own.make(fake_ioctl, NULL, NULL, &own);
}

static int tear_down(void **state)
{
	(void)state;
	driver.before = driver.after = NULL;
	gp_kfd_own.free(own);
	own = NULL;
	return close(fd);
}

static struct kfd_create_queue_args create_args(uint32_t i)
{
	return (struct kfd_create_queue_args){ .ring = 0x10000ull * (i + 1),
					       .rptr = (uintptr_t)&pointers[2 * i],
					       .wptr = (uintptr_t)&pointers[2 * i + 1],
					       .ring_size = 4096,
					       .gpu_id = 77,
					       .type = KFD_TYPE_AQL,
					       .percent = 100,
					       .priority = 7,
					       .eop = 1,
					       .eop_size = 2,
					       .cwsr = 3 };
}

/* Our number of the newest queue. */
static uint64_t newest(void)
{
	static struct gp_own_queue queues[GP_OWN_MOST];
	int n = gp_kfd_own.queues(own, queues, GP_OWN_MOST);
	uint64_t number = 0;

	for (int i = 0; i < n; i++)
		number = queues[i].queue > number ? queues[i].queue : number;
	return number;
}

static struct gp_own_queue queue_of(uint64_t number)
{
	static struct gp_own_queue queues[GP_OWN_MOST];
	int n = gp_kfd_own.queues(own, queues, GP_OWN_MOST);

	for (int i = 0; i < n; i++)
		if (queues[i].queue == number)
			return queues[i];
	fail_msg("no queue %llu", (unsigned long long)number);
	return queues[0];
}

static uint64_t create_of_type(uint32_t i, uint32_t type)
{
	struct kfd_create_queue_args args = create_args(i);

	args.type = type;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
	return newest();
}

static uint64_t create(uint32_t i)
{
	return create_of_type(i, KFD_TYPE_AQL);
}

static int update(uint32_t queue_id, uint32_t percent, uint32_t priority)
{
	struct kfd_update_queue_args args = { .ring = 0xabc000,
					      .queue_id = queue_id,
					      .ring_size = 8192,
					      .percent = percent,
					      .priority = priority };

	return gp_kfd_own.call(own, fd, KFD_IOC_UPDATE_QUEUE, &args, -1);
}

static int destroy(uint32_t queue_id)
{
	struct kfd_destroy_queue_args args = { .queue_id = queue_id };

	return gp_kfd_own.call(own, fd, KFD_IOC_DESTROY_QUEUE, &args, -1);
}

static int apply_with(uint64_t number, uint32_t want, uint32_t way, uint32_t type, uint64_t timeout_ns)
{
	struct gp_apply_opts opts = {
		.size = sizeof(opts), .way = way, .type = type, .timeout_ns = timeout_ns
	};
	struct gp_want w = { .queue = number, .want = want };
	int r = gp_kfd_own.apply(own, fd, &w, 1, &opts);

	assert_int_equal(r, w.status);
	return r;
}

static int apply(uint64_t number, uint32_t want)
{
	return apply_with(number, want, GP_KFD_WAY_UPDATE, GP_PREEMPT_SAVE, 0);
}

/* Requests and what is passed on */

static void calls_about_queues_are_wanted_in_every_size_and_nothing_else_is(void **state)
{
	(void)state;
	assert_true(gp_kfd_own.wants(KFD_IOC_CREATE_QUEUE));
	assert_true(gp_kfd_own.wants(KFD_IOC_UPDATE_QUEUE));
	assert_true(gp_kfd_own.wants(KFD_IOC_DESTROY_QUEUE));
	assert_true(gp_kfd_own.wants(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x02, 88)));    /* Linux 6.1's */
	assert_true(gp_kfd_own.wants(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x02, 200)));   /* a later one's */
	assert_true(gp_kfd_own.wants((unsigned long)(long)(int)KFD_IOC_CREATE_QUEUE)); /* as from an int */
	assert_false(gp_kfd_own.wants(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x02, 52))); /* no room for the id */
	assert_false(gp_kfd_own.wants(_IOC(_IOC_WRITE, 'K', 0x07, 20)));
	assert_false(gp_kfd_own.wants(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x03, 0)));
	assert_false(gp_kfd_own.wants(_IOC(_IOC_READ | _IOC_WRITE, 'd', 0x02, 96)));
	assert_false(gp_kfd_own.wants(KFD_IOC_VERSION));
	assert_false(gp_kfd_own.wants(KFD_IOC_ALLOC));
	assert_false(gp_kfd_own.wants(0x5401)); /* TCGETS */
}

static void a_created_queue_is_listed_as_the_application_made_it(void **state)
{
	struct gp_own_queue q;

	(void)state;
	q = queue_of(create(0));
	assert_int_equal(q.ring, 0x10000);
	assert_int_equal(q.ring_size, 4096);
	assert_int_equal(q.rptr_address, (uintptr_t)&pointers[0]);
	assert_int_equal(q.wptr_address, (uintptr_t)&pointers[1]);
	assert_int_equal(q.gpu_id, 77);
	assert_int_equal(q.queue_id, 0);
	assert_int_equal(q.kind, GP_KIND_COMPUTE);
	assert_int_equal(q.priority, 7);
	assert_int_equal(q.percent, 100);
	assert_int_equal(q.stopped, 0);
}

static void every_type_of_queue_has_its_kind(void **state)
{
	static const uint32_t kinds[] = {
		[KFD_TYPE_COMPUTE] = GP_KIND_COMPUTE,     [KFD_TYPE_SDMA] = GP_KIND_SDMA,
		[KFD_TYPE_AQL] = GP_KIND_COMPUTE,         [KFD_TYPE_SDMA_XGMI] = GP_KIND_XGMI,
		[KFD_TYPE_SDMA_BY_ENGINE] = GP_KIND_SDMA, [5] = GP_KIND_UNKNOWN
	};

	(void)state;
	for (uint32_t type = 0; type < sizeof(kinds) / sizeof(kinds[0]); type++)
		assert_int_equal(queue_of(create_of_type(type, type)).kind, kinds[type]);
}

static void an_older_drivers_shorter_struct_is_understood(void **state)
{
	struct kfd_create_queue_args args = create_args(0);
	unsigned long request = _IOC(_IOC_READ | _IOC_WRITE, 'K', 0x02, 88);

	(void)state;
	assert_int_equal(gp_kfd_own.call(own, fd, request, &args, -1), 0);
	assert_int_equal(driver.last_size, 88);
	assert_int_equal(queue_of(newest()).ring, 0x10000);
}

static void a_call_on_another_file_is_passed_on_and_not_remembered(void **state)
{
	struct kfd_create_queue_args args = create_args(0);
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_kfd_own.call(own, other, KFD_IOC_CREATE_QUEUE, &args, 3), 0);
	assert_int_equal(driver.queues[0].set.priority, 7);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 0);
	close(other);
	assert_int_equal(gp_kfd_own.call(own, other, KFD_IOC_CREATE_QUEUE, &args, 3), -1);
	assert_int_equal(errno, EBADF);
}

static void a_failed_create_is_not_remembered_and_its_errno_stays(void **state)
{
	struct kfd_create_queue_args args = create_args(0);

	(void)state;
	driver.fail_nr = 0x02;
	driver.fail_with = ENOSPC;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, 4), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(args.priority, 7);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 0);
}

static void a_call_that_succeeds_leaves_errno_alone(void **state)
{
	struct kfd_create_queue_args args = create_args(0);

	(void)state;
	errno = 4711;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, 4), 0);
	assert_int_equal(errno, 4711);
	assert_int_equal(update(0, 50, 7), 0);
	assert_int_equal(errno, 4711);
	assert_int_equal(destroy(0), 0);
	assert_int_equal(errno, 4711);
	gp_kfd_own.free(own);
	setenv("GPREEMPT_KFD", "/nonexistent", 1);
	assert_int_equal(gp_kfd_own.make(fake_ioctl, NULL, NULL, &own), 0);
	errno = 4711;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, 4), 0);
	assert_int_equal(errno, 4711);
}

static void a_pointer_to_nowhere_is_the_drivers_to_refuse(void **state)
{
	void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	driver.fail_nr = ANY_CALL;
	driver.fail_with = EFAULT;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, nowhere, 5), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_UPDATE_QUEUE, nowhere, -1), -1);
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_DESTROY_QUEUE, nowhere, -1), -1);
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, NULL, 5), -1);
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_UPDATE_QUEUE, NULL, -1), -1);
	assert_int_equal(driver.calls, 5);
	munmap(nowhere, 4096);
}

static void a_priority_reaches_the_driver_and_the_callers_struct_keeps_its_own(void **state)
{
	struct kfd_create_queue_args args = create_args(0);

	(void)state;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, 11), 0);
	assert_int_equal(driver.queues[0].set.priority, 11);
	assert_int_equal(args.priority, 7);
	assert_int_equal(args.doorbell_offset, 0x1000);
	assert_int_equal(queue_of(newest()).priority, 11);
}

/* Stop and resume */

static void a_stop_gives_the_driver_0_percent_and_a_resume_what_was_set(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(driver.queues[0].set.ring, 0x10000);
	assert_int_equal(driver.queues[0].set.ring_size, 4096);
	assert_int_equal(driver.queues[0].set.priority, 7);
	assert_int_equal(queue_of(q).stopped, 1);
	assert_int_equal(queue_of(q).percent, 100);
	assert_int_equal(gp_kfd_own.stopped(own), 1);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 100);
	assert_int_equal(queue_of(q).stopped, 0);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
}

static void the_bits_above_the_percentage_survive_a_stop(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(update(0, 0x364, 7), 0);
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(driver.queues[0].set.percent, 0x300);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 0x364);
}

static void a_second_stop_or_resume_makes_no_call(void **state)
{
	uint64_t q = create(0);
	uint32_t calls;

	(void)state;
	calls = driver.calls;
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.calls, calls);
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(driver.calls, calls + 1);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.calls, calls + 2);
}

static void of_many_wants_each_has_its_status_and_the_first_error_is_returned(void **state)
{
	struct gp_want wants[] = { { .want = GP_STOP },
				   { .queue = 999999, .want = GP_STOP },
				   { .want = GP_BACKGROUND },
				   { .want = 17 },
				   { .want = GP_STOP } };

	(void)state;
	wants[0].queue = wants[2].queue = wants[3].queue = create(0);
	wants[4].queue = create(1);
	assert_int_equal(gp_kfd_own.apply(own, -1, wants, 5, NULL), -ENOENT);
	assert_int_equal(wants[0].status, 0);
	assert_int_equal(wants[1].status, -ENOENT);
	assert_int_equal(wants[2].status, -ENOTSUP);
	assert_int_equal(wants[3].status, -EINVAL);
	assert_int_equal(wants[4].status, 0);
	assert_int_equal(driver.queues[1].set.percent, 0);
}

static uint32_t largest_share;

static void see_share(unsigned long request, const void *args)
{
	uint32_t share = ((const struct kfd_update_queue_args *)args)->percent;

	if (_IOC_NR(request) == 0x07 && share > largest_share)
		largest_share = share;
}

static void an_update_of_a_stopped_queue_leaves_it_stopped_and_comes_with_the_resume(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	largest_share = 0;
	driver.before = see_share;
	assert_int_equal(update(0, 60, 11), 0);
	assert_int_equal(largest_share, 0);
	driver.before = NULL;
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(driver.queues[0].set.priority, 11);
	assert_int_equal(driver.queues[0].set.ring, 0xabc000);
	assert_int_equal(queue_of(q).percent, 60);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 60);
	assert_int_equal(driver.queues[0].set.ring, 0xabc000);
	assert_int_equal(driver.queues[0].set.ring_size, 8192);
}

static void a_queue_that_the_application_stopped_itself_stays_so_after_a_resume(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(update(0, 0, 7), 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
}

static void an_update_that_the_driver_refuses_is_not_remembered(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(update(0, 100, 16), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(queue_of(q).priority, 7);
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(update(0, 101, 7), -1); /* the share is not sent: it must be refused all the same */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(update(0, 100, 16), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 100);
	assert_int_equal(driver.queues[0].set.priority, 7);
	assert_int_equal(driver.queues[0].set.ring, 0x10000);
}

static void a_share_that_only_a_later_driver_takes_does_not_let_a_stopped_queue_run(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.takes_any_share = 1;
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(update(0, 200, 7), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 200);
}

/* The driver does half of it, as after a timeout: the values are in, and an error is out. */
static void half_a_stop(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x07 && driver.fail_with) {
		driver.queues[0].set.percent = 0;
		driver.fail_with = 0;
	}
}

static void after_a_stop_that_fails_the_queue_runs(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.fail_nr = 0x07;
	driver.fail_with = ETIME;
	driver.after = half_a_stop;
	assert_int_equal(apply(q, GP_STOP), -ETIME);
	assert_int_equal(driver.queues[0].set.percent, 100);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
}

static void a_stop_that_the_driver_refuses_leaves_nothing_to_undo(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.fail_nr = 0x07;
	driver.fail_with = EFAULT;
	assert_int_equal(apply(q, GP_STOP), -EFAULT);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
}

static void a_resume_that_fails_is_owed_until_one_succeeds(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	driver.fail_nr = 0x07;
	driver.fail_with = EIO;
	assert_int_equal(apply(q, GP_RUN), -EIO);
	assert_int_equal(gp_kfd_own.stopped(own), 1);
	assert_int_equal(gp_kfd_own.resume_all(own, fd), -EIO);
	driver.fail_with = 0;
	assert_int_equal(gp_kfd_own.resume_all(own, -1), 0);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
	assert_int_equal(driver.queues[0].set.percent, 100);
}

static uint32_t interruptions;

static void interrupt_twice(unsigned long request, const void *args)
{
	(void)request, (void)args;
	driver.fail_with = interruptions++ < 2 ? EINTR : 0;
}

static void a_call_of_ours_that_is_interrupted_is_made_again(void **state)
{
	uint64_t q = create(0);

	(void)state;
	interruptions = 0;
	driver.fail_nr = 0x07;
	driver.before = interrupt_twice;
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
}

static void where_the_drivers_file_is_out_of_reach_the_applications_descriptor_serves(void **state)
{
	char folder[] = "/tmp/gpreempt-own-XXXXXX", path[64];
	struct gp_want want = { .want = GP_STOP };

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/kfd", folder);
	assert_int_equal(symlink(FILE_OF_DRIVER, path), 0);
	setenv("GPREEMPT_KFD", path, 1);
	gp_kfd_own.free(own);
	assert_int_equal(gp_kfd_own.make(fake_ioctl, NULL, NULL, &own), 0);
	want.queue = create(0);
	unlink(path);
	rmdir(folder);
	assert_int_equal(gp_kfd_own.apply(own, -1, &want, 1, NULL), 0);
	assert_int_equal(gp_kfd_own.resume_all(own, -1), 0);
	assert_int_equal(driver.queues[0].set.percent, 100);
	close(fd);
	want.want = GP_STOP;
	assert_int_equal(gp_kfd_own.apply(own, -1, &want, 1, NULL), -ENOENT);
	fd = open(FILE_OF_DRIVER, O_RDWR | O_CLOEXEC);
}

static void freeing_resumes_everything(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(apply(create(i), GP_STOP), 0);
	gp_kfd_own.free(own);
	own = NULL;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(driver.queues[i].set.percent, 100);
}

static void a_process_may_have_as_many_queues_as_the_driver_gives_and_more_run_unmanaged(void **state)
{
	struct kfd_create_queue_args args = create_args(0);

	(void)state;
	for (uint32_t i = 0; i < GP_OWN_MOST + 10; i++)
		assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), GP_OWN_MOST);
	assert_int_equal(update(GP_OWN_MOST + 1, 50, 7), 0);
	assert_int_equal(driver.queues[GP_OWN_MOST + 1].set.percent, 50);
	assert_int_equal(destroy(GP_OWN_MOST + 1), 0);
}

/* Destroy */

static void a_destroyed_queue_is_gone_stopped_or_not(void **state)
{
	uint64_t a = create(0), b = create(1);

	(void)state;
	assert_int_equal(apply(b, GP_STOP), 0);
	assert_int_equal(destroy(0), 0);
	assert_int_equal(destroy(1), 0);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 0);
	assert_int_equal(apply(a, GP_STOP), -ENOENT);
	assert_int_equal(apply(b, GP_RUN), -ENOENT);
}

static void a_destroy_that_fails_changes_nothing(void **state)
{
	uint64_t q = create(0);
	uint32_t calls;

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	driver.fail_nr = 0x03;
	driver.fail_with = EINTR;
	calls = driver.calls;
	assert_int_equal(destroy(0), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(driver.calls, calls + 1);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 100);
}

static void after_a_timeout_of_a_destroy_the_queue_is_gone(void **state)
{
	(void)state;
	create(0);
	driver.fail_nr = 0x03;
	driver.fail_with = ETIME;
	assert_int_equal(destroy(0), -1);
	assert_int_equal(errno, ETIME);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 0);
}

static void an_id_that_comes_again_without_a_destroy_is_a_new_queue(void **state)
{
	uint64_t old = create(0), new;

	(void)state;
	driver.queues[0].exists = 0; /* destroyed by a way we do not see */
	new = create(1);
	assert_true(new != old);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 1);
	assert_int_equal(apply(old, GP_STOP), -ENOENT);
	assert_int_equal(apply(new, GP_STOP), 0);
	assert_int_equal(driver.queues[0].set.ring, 0x20000);
}

static void numbers_are_never_used_twice(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t q = create(0);

		assert_true(q > last);
		last = q;
		assert_int_equal(destroy(0), 0);
	}
}

/* Events */

static void an_event_comes_once_with_what_is_newest(void **state)
{
	struct gp_own_event events[8];
	uint64_t a = create(0), b = create(1);

	(void)state;
	assert_int_equal(update(0, 30, 7), 0);
	assert_int_equal(update(0, 40, 7), 0);
	assert_int_equal(gp_kfd_own.events(own, events, 8), 2);
	assert_int_equal(events[0].kind, GP_OWN_ADDED);
	assert_int_equal(events[0].queue.queue, a);
	assert_int_equal(events[0].queue.percent, 40);
	assert_int_equal(events[1].queue.queue, b);
	assert_int_equal(update(1, 50, 7), 0);
	assert_int_equal(update(0, 60, 7), 0);
	assert_int_equal(update(1, 70, 7), 0);
	assert_int_equal(gp_kfd_own.events(own, events, 1), 1);
	assert_int_equal(events[0].kind, GP_OWN_CHANGED);
	assert_int_equal(events[0].queue.queue, b);
	assert_int_equal(events[0].queue.percent, 70);
	assert_int_equal(gp_kfd_own.events(own, events, 8), 1);
	assert_int_equal(events[0].queue.queue, a);
	assert_int_equal(gp_kfd_own.events(own, events, 8), 0);
}

static void a_queue_that_came_and_went_unseen_is_no_event(void **state)
{
	struct gp_own_event events[8];
	uint64_t seen = create(0);

	(void)state;
	assert_int_equal(gp_kfd_own.events(own, events, 8), 1);
	for (int i = 0; i < 10000; i++) {
		create(1);
		assert_int_equal(destroy(1), 0);
	}
	assert_int_equal(update(0, 50, 7), 0);
	assert_int_equal(destroy(0), 0);
	assert_int_equal(gp_kfd_own.events(own, events, 8), 1);
	assert_int_equal(events[0].kind, GP_OWN_REMOVED);
	assert_int_equal(events[0].queue.queue, seen);
}

static int wakes;

static void count_wake(void *arg)
{
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGTERM), 1);
	assert_int_equal(gp_kfd_own.stopped(own), 0); /* the lock is free */
	assert_ptr_equal(arg, &wakes);
	wakes++;
}

static void whoever_waits_for_events_is_woken_by_each_kind_and_by_nothing_else(void **state)
{
	struct gp_own_event events[8];
	sigset_t blocked;
	uint64_t q;

	(void)state;
	gp_kfd_own.free(own);
	wakes = 0;
	assert_int_equal(gp_kfd_own.make(fake_ioctl, count_wake, &wakes, &own), 0);
	q = create(0);
	assert_int_equal(wakes, 1);
	assert_int_equal(gp_kfd_own.events(own, events, 8), 1);
	assert_int_equal(apply(q, GP_STOP), 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(update(0, 50, 7), 0);
	assert_int_equal(wakes, 2);
	assert_int_equal(destroy(0), 0);
	assert_int_equal(wakes, 3);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	assert_int_equal(sigismember(&blocked, SIGTERM), 0);
}

/* The private way */

static void the_private_way_preempts_and_resumes_and_leaves_the_share(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.has_private = 1;
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_PRIVATE, GP_PREEMPT_SAVE, 7 * MS), 0);
	assert_int_equal(driver.queues[0].preempted, 1);
	assert_int_equal(driver.preempt_type, KFD_PRIVATE_SAVE);
	assert_int_equal(driver.preempt_ms, 7);
	assert_int_equal(driver.queues[0].updates, 0);
	assert_int_equal(queue_of(q).way, GP_KFD_WAY_PRIVATE);
	assert_int_equal(apply(q, GP_RUN), 0); /* whatever way it names */
	assert_int_equal(driver.queues[0].preempted, 0);
	assert_int_equal(driver.queues[0].updates, 0);
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_PRIVATE, GP_PREEMPT_DRAIN, 1), 0);
	assert_int_equal(driver.preempt_type, KFD_PRIVATE_DRAIN);
	assert_int_equal(driver.preempt_ms, 1);
}

static void an_update_of_a_queue_stopped_in_the_private_way_does_not_let_it_run(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.has_private = 1;
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_PRIVATE, GP_PREEMPT_SAVE, 0), 0);
	assert_int_equal(update(0, 80, 9), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(apply(q, GP_RUN), 0);
	assert_int_equal(driver.queues[0].preempted, 0);
	assert_int_equal(driver.queues[0].set.percent, 80);
	assert_int_equal(driver.queues[0].set.priority, 9);
}

static void a_driver_without_the_private_way_says_so_and_the_queue_runs(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_PRIVATE, GP_PREEMPT_SAVE, 0), -ENOTTY);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
	assert_int_equal(driver.queues[0].updates, 0);
}

static int was_preempted;

static void see_destroy(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x03)
		was_preempted = driver.queues[0].preempted;
}

static void a_queue_stopped_in_the_private_way_is_resumed_before_it_is_destroyed(void **state)
{
	uint64_t q = create(0);

	(void)state;
	driver.has_private = 1;
	driver.before = see_destroy;
	was_preempted = -1;
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_PRIVATE, GP_PREEMPT_SAVE, 0), 0);
	assert_int_equal(update(0, 80, 9), 0);
	driver.fail_nr = 0x03;
	driver.fail_with = EINTR;
	assert_int_equal(destroy(0), -1);
	assert_int_equal(was_preempted, 0);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
	assert_int_equal(driver.queues[0].set.percent, 80);
	driver.fail_with = 0;
	assert_int_equal(destroy(0), 0);
}

/* Activity */

static void what_no_call_of_the_driver_does_is_refused(void **state)
{
	uint64_t q = create(0);

	(void)state;
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_UPDATE, GP_PREEMPT_RESET, 0), -ENOTSUP);
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_UPDATE, GP_PREEMPT_DRAIN, 0), -ENOTSUP);
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_DBG, GP_PREEMPT_SAVE, 0), -ENOTSUP);
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_UPDATE | GP_KFD_WAY_PRIVATE, GP_PREEMPT_SAVE, 0),
			 -ENOTSUP);
	assert_int_equal(apply_with(q, GP_STOP, GP_KFD_WAY_UPDATE, 99, 0), -EINVAL);
	assert_int_equal(driver.queues[0].updates, 0);
}

static void a_queue_is_busy_while_written_is_ahead_of_read(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t rptr, wptr;
		uint32_t activity;
	} cases[] = {
		{ KFD_TYPE_AQL, 0, 0, GP_ACTIVITY_IDLE },
		{ KFD_TYPE_AQL, 4, 5, GP_ACTIVITY_BUSY },
		{ KFD_TYPE_AQL, 0x100000004, 0x100000004, GP_ACTIVITY_IDLE },
		{ KFD_TYPE_AQL, 1, 0x100000001, GP_ACTIVITY_BUSY },
		{ KFD_TYPE_SDMA, 64, 64, GP_ACTIVITY_IDLE },
		{ KFD_TYPE_SDMA, 64, 96, GP_ACTIVITY_BUSY },
		/* A ring of 1024 dwords: read goes round, written does not, and above 32 bits is something
		   else. */
		{ KFD_TYPE_COMPUTE, 10, 1024 + 10, GP_ACTIVITY_IDLE },
		{ KFD_TYPE_COMPUTE, 10, 1024 + 11, GP_ACTIVITY_BUSY },
		{ KFD_TYPE_COMPUTE, 0xffffffff0000000aull, 2048 + 10, GP_ACTIVITY_IDLE },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t q = create_of_type(i, cases[i].type);
		struct gp_activity a;

		pointers[2 * i] = cases[i].rptr;
		pointers[2 * i + 1] = cases[i].wptr;
		assert_int_equal(gp_kfd_own.activity(own, &q, 1, &a), 0);
		assert_int_equal(a.activity, cases[i].activity);
		assert_int_equal(a.wptr, cases[i].wptr);
	}
}

static void an_address_gone_bad_makes_one_queue_unknown_and_no_other(void **state)
{
	uint64_t numbers[300],
		*page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gp_activity a[300];
	struct kfd_create_queue_args args;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		args = create_args(i);
		if (i % 100 == 50)
			args.rptr = (uintptr_t)page; /* far from the other: two pieces */
		if (i == 150)
			args.wptr = (uintptr_t)(page + 1); /* both there: one piece */
		assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
		numbers[i] = newest();
		pointers[2 * i + 1] = i % 3;
	}
	assert_int_equal(gp_kfd_own.activity(own, numbers, 300, a), 0);
	munmap(page, 4096);
	numbers[7] = numbers[0] = numbers[299] = 123456; /* nobody's */
	assert_int_equal(gp_kfd_own.activity(own, numbers, 300, a), -ENOENT);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t want = i % 3 ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;

		if (i % 100 == 50 || i == 7 || i == 0 || i == 299)
			want = GP_ACTIVITY_UNKNOWN;
		assert_int_equal(a[i].activity, want);
	}
	assert_int_equal(gp_kfd_own.activity(own, &numbers[150], 1, a), -EFAULT);
}

/* A ring of 64 AQL packets whose last one has this signal. */
static uint64_t create_written(uint64_t (*ring)[8], uint64_t written, const void *signal)
{
	struct kfd_create_queue_args args = create_args(0);

	args.ring = (uintptr_t)ring;
	pointers[0] = pointers[1] = written; /* all are taken */
	memset(ring, 0xff, 64 * sizeof(*ring));
	if (written)
		ring[(written - 1) % 64][7] = (uintptr_t)signal;
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
	return newest();
}

static uint32_t finished(uint64_t q)
{
	struct gp_activity a;

	assert_int_equal(gp_kfd_own.activity(own, &q, 1, &a), 0);
	assert_int_equal(gp_kfd_own.finished(own, &q, 1, &a), 0);
	return a.activity;
}

static void an_empty_queue_has_finished_when_its_last_packets_signal_is_down(void **state)
{
	static uint64_t ring[64][8];
	static const uint64_t written[] = { 1, 7, 64, 65, 6400000000 };
	int64_t signal[8] = { 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
		uint64_t q = create_written(ring, written[i], signal);

		signal[1] = 1;
		assert_int_equal(finished(q), GP_ACTIVITY_BUSY);
		signal[1] = 0;
		assert_int_equal(finished(q), GP_ACTIVITY_IDLE);
		signal[1] = -1; /* it counted down for another, too */
		assert_int_equal(finished(q), GP_ACTIVITY_IDLE);
		pointers[1]++; /* and one more is there to be taken */
		assert_int_equal(finished(q), GP_ACTIVITY_BUSY);
	}
}

static void of_many_queues_each_has_finished_or_not_for_itself(void **state)
{
	static uint64_t rings[200][64][8], numbers[200];
	static int64_t values[200][2];
	struct gp_activity a[200];

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		struct kfd_create_queue_args args = create_args(i);

		args.ring = (uintptr_t)rings[i];
		values[i][1] = i % 3;
		rings[i][0][7] = i % 5 ? (uintptr_t)values[i] : i % 2 ? 8 : 0; /* no memory, or none */
		pointers[2 * i] = pointers[2 * i + 1] = i % 7 ? 1 : 0;
		assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
		numbers[i] = newest();
	}
	assert_int_equal(gp_kfd_own.activity(own, numbers, 200, a), 0);
	assert_int_equal(gp_kfd_own.finished(own, numbers, 200, a), 0);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t want = i % 3 ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;

		if (i % 5 == 0)
			want = GP_ACTIVITY_UNKNOWN;
		if (i % 7 == 0)
			want = GP_ACTIVITY_IDLE;
		assert_int_equal(a[i].activity, want);
	}
}

/* A sandbox that refuses to read memory by process, as Docker's once did; in a child, because it lasts. */
static int refuse_process_vm(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void a_sandbox_that_refuses_the_call_for_it_changes_nothing_of_that(void **state)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		close(1); /* a failure goes on from here, in the child too */
		if (refuse_process_vm() < 0)
			_exit(2);
		gp_kfd_own.forget(own);
		a_queue_is_busy_while_written_is_ahead_of_read(state);
		memset(pointers, 0, sizeof(pointers));
		an_address_gone_bad_makes_one_queue_unknown_and_no_other(state);
		of_many_queues_each_has_finished_or_not_for_itself(state);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void a_queue_that_never_had_a_packet_has_finished(void **state)
{
	static uint64_t ring[64][8];

	(void)state;
	assert_int_equal(finished(create_written(ring, 0, NULL)), GP_ACTIVITY_IDLE);
}

static void whether_a_packet_without_a_signal_has_ended_is_not_known(void **state)
{
	static uint64_t ring[64][8];
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_int_equal(finished(create_written(ring, 5, NULL)), GP_ACTIVITY_UNKNOWN);
	assert_int_equal(finished(create_written(ring, 5, gone)), GP_ACTIVITY_UNKNOWN);
	munmap(gone, 4096);
}

static void a_ring_that_is_no_memory_any_more_is_an_error(void **state)
{
	uint64_t(*ring)[8] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t queues[2] = { create_written(ring, 5, NULL), create(1) };
	struct gp_activity a[2];

	(void)state;
	munmap(ring, 4096);
	assert_int_equal(gp_kfd_own.activity(own, queues, 2, a), 0);
	assert_int_equal(gp_kfd_own.finished(own, queues, 2, a), -EFAULT);
	assert_int_equal(a[0].activity, GP_ACTIVITY_UNKNOWN);
	assert_int_equal(a[1].activity, GP_ACTIVITY_IDLE);
	a[0].activity = GP_ACTIVITY_IDLE;
	queues[0] = 123456; /* it went since */
	assert_int_equal(gp_kfd_own.finished(own, queues, 2, a), -ENOENT);
	assert_int_equal(a[0].activity, GP_ACTIVITY_UNKNOWN);
	assert_int_equal(a[1].activity, GP_ACTIVITY_IDLE);
}

static void queues_that_have_no_signals_have_finished_when_they_are_empty(void **state)
{
	static const uint32_t types[] = { KFD_TYPE_COMPUTE, KFD_TYPE_SDMA, KFD_TYPE_SDMA_XGMI };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t q = create_of_type(i, types[i]);

		pointers[2 * i] = pointers[2 * i + 1] = 640;
		assert_int_equal(finished(q), GP_ACTIVITY_IDLE);
		pointers[2 * i + 1] = 704;
		assert_int_equal(finished(q), GP_ACTIVITY_BUSY);
	}
}

/* The kernel's clock data: in every process, readable, and as a GPU's memory without pages to look up. */
static uint64_t memory_without_pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long address = 0;
	char line[256];

	while (maps && !address && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]"))
			sscanf(line, "%llx", &address);
	if (maps)
		fclose(maps);
	return address;
}

static void pointers_in_memory_that_has_no_pages_are_read_as_any_others(void **state)
{
	struct kfd_create_queue_args args = create_args(0);
	struct gp_activity a;
	uint64_t q;

	(void)state;
	args.rptr = args.wptr = memory_without_pages();
	assert_true(args.rptr);
	assert_int_equal(gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1), 0);
	q = newest();
	assert_int_equal(gp_kfd_own.activity(own, &q, 1, &a), 0);
	assert_int_equal(a.activity, GP_ACTIVITY_IDLE);
}

/* Races. Where two calls meet is arranged: something else happens inside the driver's. */

static uint64_t meeting;
static int meetings;

static void stop_before_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) != 0x07 || meetings++)
		return;
	assert_int_equal(apply(meeting, GP_STOP), 0);
}

static void resume_before_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) != 0x07 || meetings++)
		return;
	assert_int_equal(apply(meeting, GP_RUN), 0);
}

static void stop_after_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) != 0x07 || meetings++)
		return;
	assert_int_equal(apply(meeting, GP_STOP), 0);
}

static void a_stop_that_overtakes_an_update_holds(void **state)
{
	(void)state;
	meeting = create(0);
	meetings = 0;
	driver.before = stop_before_update;
	assert_int_equal(update(0, 90, 9), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(driver.queues[0].set.priority, 9);
	assert_int_equal(apply(meeting, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 90);
}

static void a_stop_that_comes_right_after_an_update_stops_with_its_values(void **state)
{
	(void)state;
	meeting = create(0);
	meetings = 0;
	driver.after = stop_after_update;
	assert_int_equal(update(0, 90, 9), 0);
	assert_int_equal(driver.queues[0].set.percent, 0);
	assert_int_equal(driver.queues[0].set.priority, 9);
	assert_int_equal(driver.queues[0].set.ring, 0xabc000);
}

static void a_resume_that_overtakes_an_update_holds(void **state)
{
	(void)state;
	meeting = create(0);
	assert_int_equal(apply(meeting, GP_STOP), 0);
	meetings = 0;
	driver.before = resume_before_update;
	assert_int_equal(update(0, 90, 9), 0);
	assert_int_equal(driver.queues[0].set.percent, 90);
	assert_int_equal(driver.queues[0].set.priority, 9);
}

static void update_before_resume(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x07 && !meetings++)
		assert_int_equal(update(0, 90, 9), 0);
}

static void an_update_that_overtakes_a_resume_holds(void **state)
{
	(void)state;
	meeting = create(0);
	assert_int_equal(apply(meeting, GP_STOP), 0);
	meetings = 0;
	driver.before = update_before_resume;
	assert_int_equal(apply(meeting, GP_RUN), 0);
	assert_int_equal(driver.queues[0].set.percent, 90);
	assert_int_equal(driver.queues[0].set.priority, 9);
}

static void replace_after_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) != 0x07 || meetings++)
		return;
	assert_int_equal(destroy(0), 0);
	create(1);
}

static void an_update_is_not_remembered_for_the_queue_that_got_the_id_meanwhile(void **state)
{
	struct gp_own_queue q;

	(void)state;
	create(0);
	meetings = 0;
	driver.after = replace_after_update;
	assert_int_equal(update(0, 90, 9), 0);
	q = queue_of(newest());
	assert_int_equal(q.queue_id, 0);
	assert_int_equal(q.ring, 0x20000);
	assert_int_equal(q.percent, 100);
	assert_int_equal(driver.queues[0].updates, 0);
}

static void destroy_before_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x07 && !meetings++)
		assert_int_equal(destroy(0), 0);
}

static void an_update_overtaken_by_a_destroy_fails_as_the_driver_says(void **state)
{
	(void)state;
	create(0);
	meetings = 0;
	driver.before = destroy_before_update;
	assert_int_equal(update(0, 90, 9), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 0);
}

static void resume_before_destroy(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x03)
		assert_int_equal(apply(meeting, GP_RUN), 0);
}

static void a_resume_that_meets_a_destroy_that_fails_is_not_lost(void **state)
{
	(void)state;
	meeting = create(0);
	assert_int_equal(apply(meeting, GP_STOP), 0);
	driver.before = resume_before_destroy;
	driver.fail_nr = 0x03;
	driver.fail_with = EINTR;
	assert_int_equal(destroy(0), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(driver.queues[0].set.percent, 100);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
}

/* A stop is in the driver until let_go is set; meanwhile another thread destroys the queue and creates one
 * that gets its id. */
static int inside, let_go;

static void hold_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) != 0x07)
		return;
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void *destroy_and_create(void *arg)
{
	struct kfd_create_queue_args args = create_args(1);

	(void)arg;
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		sched_yield();
	if (destroy(0) < 0 || gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1) < 0)
		return &let_go;
	return NULL;
}

static void *let_go_later(void *arg)
{
	struct timespec t = { .tv_nsec = 50 * MS };

	(void)arg;
	while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		sched_yield();
	nanosleep(&t, NULL);
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void a_stop_under_way_never_hits_the_queue_that_gets_the_id_next(void **state)
{
	uint64_t q = create(0);
	pthread_t threads[2];
	void *wrong;
	int r;

	(void)state;
	inside = let_go = 0;
	driver.before = hold_update;
	pthread_create(&threads[0], NULL, destroy_and_create, NULL);
	pthread_create(&threads[1], NULL, let_go_later, NULL);
	r = apply(q, GP_STOP);
	pthread_join(threads[0], &wrong);
	pthread_join(threads[1], NULL);
	assert_null(wrong);
	assert_true(r == 0 || r == -ENOENT);
	assert_int_equal(driver.queues[0].set.ring, 0x20000);
	assert_int_equal(driver.queues[0].updates, 0);
	assert_int_equal(gp_kfd_own.stopped(own), 0);
}

/* The resume is under way before the program's update and reaches the driver after it; it has ended when the
 * program hears that its update is done. */
#define OLD_PERCENT 100u
#define NEW_PERCENT 30u

static int resuming, updated, resumed;

static void let_update_pass(unsigned long request, const void *args)
{
	const struct kfd_update_queue_args *a = args;

	if (_IOC_NR(request) != 0x07 || a->percent != OLD_PERCENT)
		return;
	__atomic_store_n(&resuming, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&updated, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void wait_for_resume(unsigned long request, const void *args)
{
	const struct kfd_update_queue_args *a = args;

	if (_IOC_NR(request) != 0x07 || a->percent != NEW_PERCENT || updated)
		return;
	__atomic_store_n(&updated, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&resumed, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void *resume_it(void *arg)
{
	int r = apply(*(uint64_t *)arg, GP_RUN);

	__atomic_store_n(&resumed, 1, __ATOMIC_RELEASE);
	return r ? arg : NULL;
}

static void a_resume_that_passes_an_update_on_its_way_does_not_undo_it(void **state)
{
	uint64_t q = create(0);
	pthread_t thread;
	void *wrong;

	(void)state;
	assert_int_equal(apply(q, GP_STOP), 0);
	resuming = updated = resumed = 0;
	driver.before = let_update_pass;
	driver.after = wait_for_resume;
	pthread_create(&thread, NULL, resume_it, &q);
	while (!__atomic_load_n(&resuming, __ATOMIC_ACQUIRE))
		sched_yield();
	assert_int_equal(update(0, NEW_PERCENT, 7), 0);
	pthread_join(thread, &wrong);
	assert_null(wrong);
	assert_int_equal(driver.queues[0].set.percent, NEW_PERCENT);
}

/* Both sides at random: what the driver has in the end is the last wish. */
#define RACE_QUEUES 4
#define RACE_CALLS 4000

static int race_over;

static void yield_sometimes(unsigned long request, const void *args)
{
	static __thread unsigned int seed = 1;

	(void)request, (void)args;
	if (rand_r(&seed) % 4 == 0)
		sched_yield();
}

static void *update_at_random(void *arg)
{
	uint32_t *last = arg;
	unsigned int seed = 7;

	for (int i = 0; i < RACE_CALLS; i++) {
		uint32_t queue = (uint32_t)rand_r(&seed) % RACE_QUEUES,
			 percent = 1 + (uint32_t)rand_r(&seed) % 100;

		if (update(queue, percent, percent % 16) == 0)
			last[queue] = percent;
	}
	__atomic_store_n(&race_over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void updates_and_stops_at_random_end_in_the_last_wish(void **state)
{
	uint32_t percents[RACE_QUEUES] = { 100, 100, 100, 100 };
	uint64_t queues[RACE_QUEUES];
	unsigned int seed = 3;
	pthread_t thread;

	(void)state;
	for (uint32_t i = 0; i < RACE_QUEUES; i++)
		queues[i] = create(i);
	driver.before = driver.after = yield_sometimes;
	race_over = 0;
	pthread_create(&thread, NULL, update_at_random, percents);
	while (!__atomic_load_n(&race_over, __ATOMIC_ACQUIRE))
		assert_int_equal(
			apply(queues[rand_r(&seed) % RACE_QUEUES], rand_r(&seed) % 2 ? GP_STOP : GP_RUN), 0);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < RACE_QUEUES; i++) {
		uint32_t want = queue_of(queues[i]).stopped ? 0 : percents[i];

		assert_int_equal(queue_of(queues[i]).percent, percents[i]);
		assert_int_equal(driver.queues[i].set.percent, want);
		assert_int_equal(apply(queues[i], GP_RUN), 0);
		assert_int_equal(driver.queues[i].set.percent, percents[i]);
	}
}

/* Signals */

static volatile int handled;

static void call_from_handler(int signal)
{
	int error = errno;

	(void)signal;
	(void)update(0, 1 + (uint32_t)handled % 100, 7);
	if (handled % 3 == 0) {
		struct kfd_create_queue_args args = create_args(5);

		if (gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, 3) == 0)
			(void)destroy(args.queue_id);
	}
	handled++;
	errno = error;
}

static int fake_without_lock(int f, unsigned long request, void *args)
{
	sigset_t all, old;
	int r;

	(void)f;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old); /* a driver is not interrupted in the middle */
	r = fake_call(request, args);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return r;
}

static void a_handler_may_call_at_any_time(void **state)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = call_from_handler, .sa_flags = SA_RESTART };
	struct gp_own_event events[8];
	uint64_t q;

	(void)state;
	gp_kfd_own.free(own);
	assert_int_equal(gp_kfd_own.make(fake_without_lock, NULL, NULL, &own), 0);
	q = create(0);
	handled = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handled < 300) {
		(void)update(0, 55, 7);
		(void)apply(q, GP_STOP);
		(void)gp_kfd_own.events(own, events, 8);
		(void)apply(q, GP_RUN);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN); /* with one that is under way, which would end us */
	signal(SIGALRM, SIG_DFL);
	assert_int_equal(queue_of(q).percent, driver.queues[0].set.percent);
}

static void destroy_in_handler(int signal)
{
	(void)signal;
	assert_int_equal(destroy(0), 0);
}

static void raise_before_update(unsigned long request, const void *args)
{
	(void)args;
	if (_IOC_NR(request) == 0x07 && !meetings++)
		raise(SIGUSR1);
}

static void a_handler_may_destroy_the_queue_that_it_interrupted_an_update_of(void **state)
{
	(void)state;
	create(0);
	meetings = 0;
	signal(SIGUSR1, destroy_in_handler);
	driver.before = raise_before_update;
	assert_int_equal(update(0, 90, 9), -1);
	assert_int_equal(errno, EFAULT);
	signal(SIGUSR1, SIG_DFL);
}

/* Children */

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static int in_child(int after_fork)
{
	struct kfd_create_queue_args args = create_args(9);

	if (after_fork)
		gp_kfd_own.forget(own);
	if (after_fork && gp_kfd_own.queues(own, NULL, 0) != 0)
		return 1;
	memset(driver.queues, 0, sizeof(driver.queues)); /* a new process, as the driver sees it */
	if (update(0, 50, 7) != -1 || errno != EFAULT)
		return 2;
	if (gp_kfd_own.call(own, fd, KFD_IOC_CREATE_QUEUE, &args, -1) < 0 ||
	    gp_kfd_own.queues(own, NULL, 0) != 1)
		return 3;
	if (gp_kfd_own.stopped(own) != 0 || apply(newest(), GP_STOP) < 0 || driver.queues[0].set.percent != 0)
		return 4;
	return 0;
}

static void a_child_begins_without_queues_with_a_handler_or_without(void **state)
{
	uint64_t q = create(0);

	(void)state;
	create(1);
	assert_int_equal(apply(q, GP_STOP), 0);
	for (int after_fork = 0; after_fork < 2; after_fork++) {
		pid_t child = fork();

		if (child == 0)
			_exit(in_child(after_fork));
		assert_int_equal(status_of(child), 0);
	}
	assert_int_equal(gp_kfd_own.queues(own, NULL, 0), 2);
	assert_int_equal(queue_of(q).stopped, 1);
}

static void a_child_that_is_born_while_the_lock_is_held_can_go_on(void **state)
{
	pid_t child;

	(void)state;
	create(0);
	for (int after_fork = 0; after_fork < 2; after_fork++) {
		child = fork();
		if (child == 0) {
			alarm(300);
			*(uint32_t *)own = 1; /* as if another thread of the parent had it */
			_exit(in_child(after_fork));
		}
		assert_int_equal(status_of(child), 0);
	}
}

static void a_child_that_shares_the_memory_does_not_touch_the_book(void **state)
{
	uint64_t q = create(0);
	pid_t child = vfork();

	(void)state;
	if (child == 0) {
		driver.fail_nr = ANY_CALL;
		driver.fail_with = EBADF; /* what the driver says to a process that is not the one */
		(void)destroy(0);
		(void)update(0, 50, 7);
		_exit(0);
	}
	assert_int_equal(status_of(child), 0);
	driver.fail_with = 0;
	assert_int_equal(queue_of(q).percent, 100);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls_about_queues_are_wanted_in_every_size_and_nothing_else_is),
		T(a_created_queue_is_listed_as_the_application_made_it),
		T(every_type_of_queue_has_its_kind),
		T(an_older_drivers_shorter_struct_is_understood),
		T(a_call_on_another_file_is_passed_on_and_not_remembered),
		T(a_failed_create_is_not_remembered_and_its_errno_stays),
		T(a_call_that_succeeds_leaves_errno_alone),
		T(a_pointer_to_nowhere_is_the_drivers_to_refuse),
		T(a_priority_reaches_the_driver_and_the_callers_struct_keeps_its_own),
		T(a_stop_gives_the_driver_0_percent_and_a_resume_what_was_set),
		T(the_bits_above_the_percentage_survive_a_stop),
		T(a_second_stop_or_resume_makes_no_call),
		T(of_many_wants_each_has_its_status_and_the_first_error_is_returned),
		T(an_update_of_a_stopped_queue_leaves_it_stopped_and_comes_with_the_resume),
		T(a_queue_that_the_application_stopped_itself_stays_so_after_a_resume),
		T(an_update_that_the_driver_refuses_is_not_remembered),
		T(a_share_that_only_a_later_driver_takes_does_not_let_a_stopped_queue_run),
		T(after_a_stop_that_fails_the_queue_runs),
		T(a_stop_that_the_driver_refuses_leaves_nothing_to_undo),
		T(a_resume_that_fails_is_owed_until_one_succeeds),
		T(a_call_of_ours_that_is_interrupted_is_made_again),
		T(where_the_drivers_file_is_out_of_reach_the_applications_descriptor_serves),
		T(freeing_resumes_everything),
		T(a_process_may_have_as_many_queues_as_the_driver_gives_and_more_run_unmanaged),
		T(a_destroyed_queue_is_gone_stopped_or_not),
		T(a_destroy_that_fails_changes_nothing),
		T(after_a_timeout_of_a_destroy_the_queue_is_gone),
		T(an_id_that_comes_again_without_a_destroy_is_a_new_queue),
		T(numbers_are_never_used_twice),
		T(an_event_comes_once_with_what_is_newest),
		T(a_queue_that_came_and_went_unseen_is_no_event),
		T(whoever_waits_for_events_is_woken_by_each_kind_and_by_nothing_else),
		T(the_private_way_preempts_and_resumes_and_leaves_the_share),
		T(an_update_of_a_queue_stopped_in_the_private_way_does_not_let_it_run),
		T(a_driver_without_the_private_way_says_so_and_the_queue_runs),
		T(a_queue_stopped_in_the_private_way_is_resumed_before_it_is_destroyed),
		T(what_no_call_of_the_driver_does_is_refused),
		T(a_queue_is_busy_while_written_is_ahead_of_read),
		T(an_address_gone_bad_makes_one_queue_unknown_and_no_other),
		T(a_sandbox_that_refuses_the_call_for_it_changes_nothing_of_that),
		T(pointers_in_memory_that_has_no_pages_are_read_as_any_others),
		T(an_empty_queue_has_finished_when_its_last_packets_signal_is_down),
		T(of_many_queues_each_has_finished_or_not_for_itself),
		T(a_queue_that_never_had_a_packet_has_finished),
		T(whether_a_packet_without_a_signal_has_ended_is_not_known),
		T(a_ring_that_is_no_memory_any_more_is_an_error),
		T(queues_that_have_no_signals_have_finished_when_they_are_empty),
		T(a_stop_that_overtakes_an_update_holds),
		T(a_stop_that_comes_right_after_an_update_stops_with_its_values),
		T(a_resume_that_overtakes_an_update_holds),
		T(an_update_that_overtakes_a_resume_holds),
		T(an_update_overtaken_by_a_destroy_fails_as_the_driver_says),
		T(an_update_is_not_remembered_for_the_queue_that_got_the_id_meanwhile),
		T(a_resume_that_meets_a_destroy_that_fails_is_not_lost),
		T(a_stop_under_way_never_hits_the_queue_that_gets_the_id_next),
		T(a_resume_that_passes_an_update_on_its_way_does_not_undo_it),
		T(updates_and_stops_at_random_end_in_the_last_wish),
		T(a_handler_may_call_at_any_time),
		T(a_handler_may_destroy_the_queue_that_it_interrupted_an_update_of),
		T(a_child_begins_without_queues_with_a_handler_or_without),
		T(a_child_that_is_born_while_the_lock_is_held_can_go_on),
		T(a_child_that_shares_the_memory_does_not_touch_the_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
