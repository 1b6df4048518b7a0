// SPDX-License-Identifier: MIT
/* The own-process part of the nvrm backend, on a resource manager made of a table. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/nvrm/own.h"
#include "fake_rm.h"

#define GPU 0x4100u /* 0000:41:00.0 */
#define OTHER_GPU 0x8100u
#define GR 1u
#define COPY 9u
#define HOPPER_CHANNEL 0xc86fu
#define HOPPER_COMPUTE 0xcbc0u
#define HOPPER_COPY 0xc8b5u

static struct gp_own *own;
static int fd;

static int set_up(void **state)
{
	(void)state;
	fake_rm_reset();
	setenv("GPREEMPT_NVIDIACTL", RM_FILE, 1);
	fd = open(RM_FILE, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -1 : gp_nvrm_own.make(fake_rm_ioctl, NULL, NULL, &own);
}

static int tear_down(void **state)
{
	(void)state;
	rm.before = NULL;
	gp_nvrm_own.free(own);
	own = NULL;
	return close(fd);
}

/* Another open file of the driver's, which the fake tells from the first. */
static int open_another(void)
{
	return open(RM_FILE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static uint32_t alloc_as(int f, uint32_t client, uint32_t parent, uint32_t handle, uint32_t object_class,
			 const void *params)
{
	struct nvrm_alloc a = { .client = client,
				.parent = parent,
				.object = handle,
				.object_class = object_class,
				.params = (uintptr_t)params,
				.status = 99 };

	assert_int_equal(gp_nvrm_own.call(own, f, NVRM_IOC_ALLOC, &a, -1), 0);
	assert_int_equal(a.status, NVRM_OK);
	return a.object;
}

static uint32_t alloc(uint32_t client, uint32_t parent, uint32_t object_class, const void *params)
{
	return alloc_as(fd, client, parent, 0, object_class, params);
}

static uint32_t new_client(int f)
{
	return alloc_as(f, 0, 0, 0, NVRM_ROOT_CLIENT, NULL);
}

static uint32_t new_device(uint32_t client, uint32_t gpu)
{
	return alloc(client, client, NVRM_DEVICE, &gpu);
}

static uint32_t new_group(uint32_t client, uint32_t device, uint32_t engine)
{
	struct nvrm_group_params params = { .engine = engine };

	return alloc(client, device, NVRM_GROUP, &params);
}

static uint32_t new_channel(uint32_t client, uint32_t parent)
{
	return alloc(client, parent, HOPPER_CHANNEL, NULL);
}

static uint32_t free_as(int f, uint32_t client, uint32_t object)
{
	struct nvrm_free args = { .client = client, .object = object, .status = 99 };

	assert_int_equal(gp_nvrm_own.call(own, f, NVRM_IOC_FREE, &args, -1), 0);
	return args.status;
}

static uint32_t set_slice(uint32_t client, uint32_t group, uint64_t us)
{
	struct nvrm_timeslice slice = { us };
	struct nvrm_control c = { .client = client,
				  .object = group,
				  .command = NVRM_SET_TIMESLICE,
				  .params = (uintptr_t)&slice,
				  .params_size = sizeof(slice),
				  .status = 99 };

	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_CONTROL, &c, -1), 0);
	assert_int_equal(slice.us, us);
	assert_ptr_equal(c.params, &slice);
	return c.status;
}

/* A context: a client with a device, its subdevice, and one compute group with some channels. */
struct context {
	uint32_t client, device, subdevice, group, channel[100], n;
	uint64_t queue;
};

static uint64_t newest(void)
{
	static struct gp_own_queue queues[GP_OWN_MOST];
	int n = gp_nvrm_own.queues(own, queues, GP_OWN_MOST);
	uint64_t number = 0;

	for (int i = 0; i < n; i++)
		number = queues[i].queue > number ? queues[i].queue : number;
	return number;
}

static struct gp_own_queue queue_of(uint64_t number)
{
	static struct gp_own_queue queues[GP_OWN_MOST];
	int n = gp_nvrm_own.queues(own, queues, GP_OWN_MOST);

	for (int i = 0; i < n; i++)
		if (queues[i].queue == number)
			return queues[i];
	fail_msg("no queue %llu", (unsigned long long)number);
	return queues[0];
}

static int count(void)
{
	return gp_nvrm_own.queues(own, NULL, 0);
}

static struct context new_context_of(uint32_t client, uint32_t gpu, uint32_t channels)
{
	struct context c = { .client = client, .n = channels };

	c.device = new_device(c.client, gpu);
	c.subdevice = alloc(c.client, c.device, NVRM_SUBDEVICE, NULL);
	c.group = new_group(c.client, c.device, GR);
	c.queue = newest();
	for (uint32_t i = 0; i < channels; i++)
		c.channel[i] = new_channel(c.client, c.group);
	return c;
}

static struct context new_context(uint32_t gpu, uint32_t channels)
{
	return new_context_of(new_client(fd), gpu, channels);
}

static uint32_t disabled(const struct context *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += fake_find(c->client, c->channel[i])->disabled;
	return n;
}

static int apply(uint64_t queue, uint32_t want)
{
	struct gp_want w = { .queue = queue, .want = want };
	int r = gp_nvrm_own.apply(own, -1, &w, 1, NULL);

	assert_int_equal(r, w.status);
	return r;
}

/* The program itself does it, to its first so many channels. */
static uint32_t switch_own(const struct context *c, uint8_t disable, uint32_t n)
{
	struct nvrm_disable_channels args = { .disable = disable, .n = n };
	struct nvrm_control control = { .client = c->client,
					.object = c->subdevice,
					.command = NVRM_DISABLE_CHANNELS,
					.params = (uintptr_t)&args,
					.params_size = sizeof(args),
					.status = 99 };

	for (uint32_t i = 0; i < n; i++) {
		args.client[i] = c->client;
		args.channel[i] = c->channel[i];
	}
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_CONTROL, &control, -1), 0);
	return control.status;
}

static void refuse(uint32_t command, uint32_t status, uint32_t times)
{
	rm.fail_command = command;
	rm.fail_status = status;
	rm.fail_times = times;
}

/* What is seen */

static void calls_about_objects_are_wanted_and_no_others(void **state)
{
	(void)state;
	assert_int_equal(gp_nvrm_own.wants(0xc020462b), GP_OWN_CREATE);
	assert_int_equal(gp_nvrm_own.wants(0xc030462b), GP_OWN_CREATE);
	assert_int_equal(gp_nvrm_own.wants(0xc0104629), GP_OWN_CALL);
	assert_int_equal(gp_nvrm_own.wants(0xc020462a), GP_OWN_CALL);
	assert_int_equal(gp_nvrm_own.wants(0xc01c4634), GP_OWN_CALL);
	assert_int_equal(gp_nvrm_own.wants(0xc038462b), GP_OWN_NOTHING);
	assert_int_equal(gp_nvrm_own.wants(0x4600), GP_OWN_NOTHING); /* a frame buffer's */
	assert_int_equal(gp_nvrm_own.wants(0xc0204b2b), GP_OWN_NOTHING);
}

static void a_group_is_a_queue_with_its_gpu_and_kind(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(count(), 1);
	assert_int_equal(queue_of(c.queue).gpu_id, GPU);
	assert_int_equal(queue_of(c.queue).kind, GP_KIND_COMPUTE);
	new_group(c.client, c.device, COPY);
	assert_int_equal(count(), 2);
	assert_int_equal(queue_of(newest()).kind, GP_KIND_SDMA);
	assert_true(queue_of(newest()).queue_id != queue_of(c.queue).queue_id);
}

static void the_longer_allocation_is_one_too(void **state)
{
	struct nvrm_group_params params = { .engine = GR };
	struct nvrm_alloc_rights a = { .object_class = NVRM_GROUP,
				       .params = (uintptr_t)&params,
				       .status = 99 };
	struct context c = new_context(GPU, 1);

	(void)state;
	a.client = c.client;
	a.parent = c.device;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_ALLOC_RIGHTS, &a, -1), 0);
	assert_int_equal(a.status, NVRM_OK);
	assert_int_equal(count(), 2);
}

static void what_the_driver_refuses_to_allocate_is_no_queue(void **state)
{
	struct nvrm_alloc a = { .object_class = NVRM_GROUP, .client = 5, .parent = 6 };

	(void)state;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_ALLOC, &a, -1), 0);
	assert_int_equal(a.status, NVRM_INVALID_CLIENT);
	errno = 0;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_ALLOC, NULL, -1), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(count(), 0);
}

static void objects_on_another_file_are_none(void **state)
{
	struct nvrm_alloc a = { .object_class = NVRM_ROOT_CLIENT };
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_nvrm_own.call(own, other, NVRM_IOC_ALLOC, &a, -1), 0); /* the fake takes any */
	a = (struct nvrm_alloc){ .object_class = NVRM_GROUP, .client = a.object, .parent = a.object };
	assert_int_equal(gp_nvrm_own.call(own, other, NVRM_IOC_ALLOC, &a, -1), 0);
	assert_int_equal(a.status, NVRM_OK);
	assert_int_equal(count(), 0);
	close(other);
}

static void a_group_without_an_engine_is_what_is_put_on_its_channels(void **state)
{
	uint32_t client = new_client(fd), device = new_device(client, GPU), group, channel;

	(void)state;
	group = new_group(client, device, 0);
	channel = new_channel(client, group);
	assert_int_equal(queue_of(newest()).kind, GP_KIND_UNKNOWN);
	alloc(client, channel, HOPPER_COPY, NULL);
	assert_int_equal(queue_of(newest()).kind, GP_KIND_SDMA);
	alloc(client, channel, HOPPER_COMPUTE, NULL);
	alloc(client, channel, HOPPER_COPY, NULL);
	assert_int_equal(queue_of(newest()).kind, GP_KIND_COMPUTE);
}

static void every_engine_has_its_kind(void **state)
{
	static const struct {
		uint32_t engine, kind;
	} known[] = { { 1, GP_KIND_COMPUTE },    { 8, GP_KIND_COMPUTE },   { 9, GP_KIND_SDMA },
		      { 0x12, GP_KIND_SDMA },    { 0x34, GP_KIND_SDMA },   { 0x3d, GP_KIND_SDMA },
		      { 0x13, GP_KIND_UNKNOWN }, /* a decoder's */
		      { 0x33, GP_KIND_UNKNOWN }, { 0x3e, GP_KIND_UNKNOWN } };
	struct context c = new_context(GPU, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		new_group(c.client, c.device, known[i].engine);
		assert_int_equal(queue_of(newest()).kind, known[i].kind);
	}
}

static void channels_of_every_generation_are_known(void **state)
{
	static const uint32_t classes[] = { 0x906f, 0xa06f, 0xb06f, 0xc06f, 0xc36f,
					    0xc46f, 0xc56f, 0xc86f, 0xc96f, 0xca6f };
	struct context c = new_context(GPU, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		c.channel[c.n++] = alloc(c.client, c.group, classes[i], NULL);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), c.n);
}

static void a_channel_in_no_group_is_a_queue_of_its_own(void **state)
{
	struct context c = new_context(GPU, 1);
	uint32_t channel = new_channel(c.client, c.device);

	(void)state;
	assert_int_equal(count(), 2);
	assert_int_equal(apply(newest(), GP_STOP), 0);
	assert_int_equal(fake_find(c.client, channel)->disabled, 1);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(free_as(fd, c.client, channel), NVRM_OK);
	assert_int_equal(count(), 1);
}

static void contexts_on_two_gpus_are_told_apart(void **state)
{
	struct context a = new_context(GPU, 8), b = new_context(OTHER_GPU, 8);

	(void)state;
	assert_int_equal(queue_of(a.queue).gpu_id, GPU);
	assert_int_equal(queue_of(b.queue).gpu_id, OTHER_GPU);
	assert_int_equal(apply(b.queue, GP_STOP), 0);
	assert_int_equal(disabled(&a), 0);
	assert_int_equal(disabled(&b), 8);
}

static void a_group_that_came_before_the_subdevice_learns_its_gpu(void **state)
{
	uint32_t client = new_client(fd), device = new_device(client, GPU);
	struct gp_own_event e[2];

	(void)state;
	new_group(client, device, GR);
	assert_int_equal(gp_nvrm_own.events(own, e, 2), 1);
	assert_int_equal(e[0].queue.gpu_id, 0);
	alloc(client, device, NVRM_SUBDEVICE, NULL);
	assert_int_equal(gp_nvrm_own.events(own, e, 2), 1);
	assert_int_equal(e[0].kind, GP_OWN_CHANGED);
	assert_int_equal(e[0].queue.gpu_id, GPU);
}

static void a_duplicated_subdevice_does_as_the_first(void **state)
{
	struct context c = new_context(GPU, 8);
	struct nvrm_dup d = { .client = c.client,
			      .parent = c.device,
			      .client_from = c.client,
			      .object_from = c.subdevice,
			      .status = 99 };

	(void)state;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_DUP, &d, -1), 0);
	assert_int_equal(d.status, NVRM_OK);
	assert_int_equal(free_as(fd, c.client, c.subdevice), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
}

/* What is freed */

static void a_group_that_is_freed_is_gone_with_its_channels(void **state)
{
	struct context c = new_context(GPU, 8);
	struct gp_own_event e[4];

	(void)state;
	assert_int_equal(gp_nvrm_own.events(own, e, 4), 1);
	assert_int_equal(free_as(fd, c.client, c.group), NVRM_OK);
	assert_int_equal(count(), 0);
	assert_int_equal(gp_nvrm_own.events(own, e, 4), 1);
	assert_int_equal(e[0].kind, GP_OWN_REMOVED);
	assert_int_equal(e[0].queue.queue, c.queue);
	assert_int_equal(apply(c.queue, GP_STOP), -ENOENT);
	assert_int_equal(rm.switches, 0);
}

static void of_a_queue_that_changed_and_went_only_its_end_is_told(void **state)
{
	uint32_t client = new_client(fd), device = new_device(client, GPU),
		 group = new_group(client, device, 0);
	struct gp_own_event e[4];

	(void)state;
	assert_int_equal(gp_nvrm_own.events(own, e, 4), 1);
	alloc(client, new_channel(client, group), HOPPER_COMPUTE, NULL);
	assert_int_equal(free_as(fd, client, group), NVRM_OK);
	assert_int_equal(gp_nvrm_own.events(own, e, 4), 1);
	assert_int_equal(e[0].kind, GP_OWN_REMOVED);
	new_group(client, device, GR);
	assert_int_equal(free_as(fd, client, client), NVRM_OK);
	assert_int_equal(gp_nvrm_own.events(own, e, 4), 0); /* it came and went */
}

static void freeing_a_device_or_a_client_takes_all_below_and_nothing_else(void **state)
{
	struct context a = new_context(GPU, 8), b = new_context(GPU, 8);
	uint32_t second = new_device(a.client, OTHER_GPU);

	(void)state;
	new_channel(a.client, new_group(a.client, second, GR));
	assert_int_equal(count(), 3);
	assert_int_equal(free_as(fd, a.client, a.device), NVRM_OK);
	assert_int_equal(count(), 2);
	assert_int_equal(free_as(fd, a.client, a.client), NVRM_OK);
	assert_int_equal(count(), 1);
	assert_int_equal(apply(b.queue, GP_STOP), 0);
	assert_int_equal(disabled(&b), 8);
}

static void a_device_that_is_freed_leaves_the_channels_of_another(void **state)
{
	struct context c = new_context(GPU, 8);
	uint32_t second = new_device(c.client, OTHER_GPU), group, channel;

	(void)state;
	alloc(c.client, second, NVRM_SUBDEVICE, NULL);
	group = new_group(c.client, second, GR);
	channel = new_channel(c.client, group);
	assert_int_equal(free_as(fd, c.client, c.device), NVRM_OK);
	assert_int_equal(apply(newest(), GP_STOP), 0);
	assert_int_equal(fake_find(c.client, channel)->disabled, 1);
}

static void places_are_used_again_and_numbers_are_not(void **state)
{
	struct context c = new_context(GPU, 1);
	struct gp_own_event e[2];
	uint64_t last = c.queue;

	(void)state;
	assert_int_equal(gp_nvrm_own.events(own, e, 2), 1);
	for (uint32_t i = 0; i < GP_OWN_MOST + 10; i++) {
		uint32_t group = new_group(c.client, c.device, GR);

		assert_int_equal(gp_nvrm_own.events(own, e, 2), 1);
		assert_true(e[0].queue.queue > last);
		last = e[0].queue.queue;
		assert_int_equal(free_as(fd, c.client, group), NVRM_OK);
		assert_int_equal(gp_nvrm_own.events(own, e, 2), 1);
	}
	assert_int_equal(count(), 1);
}

static void a_channel_that_is_freed_is_not_spoken_of_again(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(free_as(fd, c.client, c.channel[--c.n]), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 7);
	assert_int_equal(free_as(fd, c.client, c.channel[--c.n]), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void a_free_that_the_driver_refuses_changes_nothing(void **state)
{
	struct context c = new_context(GPU, 8);
	int other = open_another();

	(void)state;
	assert_int_equal(free_as(other, c.client, c.group), NVRM_INVALID_CLIENT);
	assert_int_equal(count(), 1);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
	close(other);
}

static void a_handle_that_comes_again_is_a_new_object(void **state)
{
	struct context c = new_context(GPU, 8);
	struct nvrm_group_params params = { .engine = COPY };
	uint64_t second;

	(void)state;
	fake_drop(c.client, c.group); /* by a way that we do not see */
	alloc_as(fd, c.client, c.device, c.group, NVRM_GROUP, &params);
	second = newest();
	assert_true(second > c.queue);
	assert_int_equal(count(), 1);
	assert_int_equal(queue_of(second).kind, GP_KIND_SDMA);
	assert_int_equal(apply(second, GP_STOP), 0);
	assert_int_equal(rm.switches, 0); /* it has no channel */
}

static void a_client_whose_file_was_closed_is_gone_when_somebody_asks(void **state)
{
	int other = open_another();
	uint32_t client = new_client(other);
	struct context c = new_context(GPU, 2);
	uint32_t gpu = GPU, device = alloc_as(other, client, client, 0, NVRM_DEVICE, &gpu);
	uint64_t queue;

	(void)state;
	alloc_as(other, client, device, 0, NVRM_SUBDEVICE, NULL);
	alloc_as(other, client, alloc_as(other, client, device, 0, NVRM_GROUP, NULL), 0, HOPPER_CHANNEL,
		 NULL);
	queue = newest();
	close(other);
	fake_rm_closed(O_NONBLOCK);
	assert_int_equal(apply(queue, GP_STOP), -ENOENT);
	assert_int_equal(count(), 1);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
}

static void a_client_that_has_the_handle_of_one_whose_file_was_closed_is_another(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	fake_rm_closed(0);
	assert_int_equal(alloc_as(fd, 0, 0, c.client, NVRM_ROOT_CLIENT, NULL), c.client);
	assert_int_equal(count(), 0);
}

static void other_calls_have_the_drivers_results(void **state)
{
	struct context c = new_context(GPU, 1);
	struct nvrm_timeslice slice = { 0 };
	struct nvrm_control get = { .client = c.client,
				    .object = c.group,
				    .command = NVRM_GET_TIMESLICE,
				    .params = (uintptr_t)&slice,
				    .params_size = sizeof(slice),
				    .status = 99 };

	(void)state;
	errno = 7;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_CONTROL, &get, -1), 0);
	assert_int_equal(get.status, NVRM_OK);
	assert_int_equal(slice.us, RM_DEFAULT_SLICE);
	assert_int_equal(errno, 7);
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_CONTROL, NULL, -1), -1);
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_DUP, NULL, -1), -1);
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_FREE, NULL, -1), -1);
	assert_int_equal(errno, EFAULT);
	refuse(NVRM_SET_TIMESLICE, NVRM_INVALID_ARGUMENT, 1);
	assert_int_equal(set_slice(c.client, c.group, 5), NVRM_INVALID_ARGUMENT);
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	refuse(NVRM_SET_TIMESLICE, NVRM_INVALID_ARGUMENT, 1);
	assert_int_equal(set_slice(c.client, c.group, 5), NVRM_INVALID_ARGUMENT);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(fake_find(c.client, c.group)->slice, RM_DEFAULT_SLICE);
}

/* Stops and resumes */

static void a_stop_disables_all_channels_in_one_call_and_a_resume_enables_them(void **state)
{
	struct context c = new_context(GPU, 20);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 20);
	assert_int_equal(rm.switches, 1);
	assert_int_equal(queue_of(c.queue).stopped, 1);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(rm.switches, 1);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(rm.switches, 2);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(rm.switches, 2);
}

static void more_channels_than_a_call_takes_are_several_calls(void **state)
{
	struct context c = new_context(GPU, 100);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 100);
	assert_int_equal(rm.switches, 2);
	assert_int_equal(rm.largest, 64);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void groups_that_are_stopped_together_are_one_call(void **state)
{
	struct context a = new_context(GPU, 8), b = new_context(OTHER_GPU, 8);
	struct gp_want wants[4] = { { .queue = a.queue, .want = GP_STOP },
				    { .want = GP_STOP },
				    { .queue = b.queue } };
	uint32_t copy = new_group(a.client, a.device, COPY), channel = new_channel(a.client, copy);

	(void)state;
	wants[1].queue = newest();
	wants[3] = (struct gp_want){ .queue = 77, .want = GP_STOP };
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 4, NULL), -ENOENT);
	assert_int_equal(wants[0].status, 0);
	assert_int_equal(wants[1].status, 0);
	assert_int_equal(wants[3].status, -ENOENT);
	assert_int_equal(rm.switches, 1);
	assert_int_equal(rm.largest, 9);
	assert_int_equal(disabled(&a) + fake_find(a.client, channel)->disabled, 9);
	assert_int_equal(disabled(&b), 0);
	wants[0].want = GP_RUN;
	wants[2].want = GP_STOP;
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 3, NULL), 0);
	assert_int_equal(disabled(&a), 0);
	assert_int_equal(fake_find(a.client, channel)->disabled, 1);
	assert_int_equal(disabled(&b), 8);
	assert_int_equal(rm.switches, 3);
	wants[0].want = GP_STOP;
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 3, NULL), 0);
	assert_int_equal(rm.switches, 4);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(disabled(&a) + disabled(&b) + fake_find(a.client, channel)->disabled, 0);
	assert_int_equal(rm.switches, 6); /* one for each GPU */
}

static void one_call_is_for_one_client_on_one_gpu_and_for_what_is_to_be_alike(void **state)
{
	uint32_t client = new_client(fd), other = new_client(fd), first = rm.last_handle, copy, channel;
	struct context a = new_context_of(client, GPU, 8), b = new_context_of(client, OTHER_GPU, 8), c;
	struct gp_want wants[3] = { { .queue = a.queue, .want = GP_STOP },
				    { .queue = b.queue, .want = GP_STOP },
				    { .want = GP_STOP } };
	uint64_t beside;

	(void)state;
	copy = new_group(client, a.device, COPY);
	channel = new_channel(client, copy);
	beside = newest();
	rm.last_handle = first; /* each client has its own */
	c = new_context_of(other, GPU, 8);
	assert_int_equal(c.device, a.device);
	wants[2].queue = c.queue;
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 3, NULL), 0);
	assert_int_equal(rm.switches, 3);
	assert_int_equal(rm.largest, 8);
	wants[0].want = GP_RUN;
	wants[1] = (struct gp_want){ .queue = beside, .want = GP_STOP };
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 2, NULL), 0);
	assert_int_equal(rm.switches, 5);
	assert_int_equal(rm.largest, 8);
	assert_int_equal(disabled(&a), 0);
	assert_int_equal(disabled(&b) + disabled(&c) + fake_find(client, channel)->disabled, 17);
}

static void a_call_for_several_groups_that_failed_stopped_none_of_them(void **state)
{
	struct context a = new_context(GPU, 8);
	uint32_t copy = new_group(a.client, a.device, COPY), channel = new_channel(a.client, copy);
	struct gp_want wants[2] = { { .queue = a.queue, .want = GP_STOP }, { .want = GP_STOP } };

	(void)state;
	wants[1].queue = newest();
	for (uint32_t is_late = 0; is_late < 2; is_late++) {
		refuse(NVRM_DISABLE_CHANNELS, NVRM_INVALID_STATE, 100000); /* which may mean anything */
		rm.fails_late = is_late;
		assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 2, NULL), -EIO);
		assert_int_equal(wants[0].status, -EIO);
		assert_int_equal(wants[1].status, -EIO);
		rm.fail_times = 0;
		assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
		assert_int_equal(disabled(&a) + fake_find(a.client, channel)->disabled, 0);
	}
	assert_int_equal(gp_nvrm_own.apply(own, -1, wants, 2, NULL), 0);
	assert_int_equal(disabled(&a) + fake_find(a.client, channel)->disabled, 9);
}

static void a_channel_that_is_added_to_a_stopped_group_is_disabled_too(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	c.channel[c.n++] = new_channel(c.client, c.group);
	assert_int_equal(disabled(&c), 9);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void what_the_program_has_disabled_a_resume_leaves_so(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(switch_own(&c, 1, 4), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 4);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	assert_int_equal(switch_own(&c, 0, 4), NVRM_OK);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(switch_own(&c, 1, 4), NVRM_OK); /* and now the other way round */
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 4);
	assert_int_equal(switch_own(&c, 0, 4), NVRM_OK);
	assert_int_equal(disabled(&c), 0);
}

static void what_the_program_enables_stands_still_as_long_as_its_group_is_stopped(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(switch_own(&c, 1, 2), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(switch_own(&c, 0, 4), NVRM_OK);
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void a_switch_of_the_programs_that_is_refused_changes_nothing(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	refuse(NVRM_DISABLE_CHANNELS, NVRM_NOT_SUPPORTED, 1);
	assert_int_equal(switch_own(&c, 1, 4), NVRM_NOT_SUPPORTED);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
	refuse(NVRM_DISABLE_CHANNELS, NVRM_NOT_SUPPORTED, 1);
	assert_int_equal(switch_own(&c, 0, 4), NVRM_NOT_SUPPORTED);
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void a_driver_that_refuses_says_why_and_the_group_runs(void **state)
{
	static const struct {
		uint32_t status;
		int error;
	} cases[] = { { NVRM_NOT_SUPPORTED, -ENOTSUP },
		      { NVRM_INVALID_COMMAND, -ENOTSUP },
		      { NVRM_INSUFFICIENT_PERMISSIONS, -EPERM },
		      { NVRM_INVALID_ARGUMENT, -EINVAL },
		      { NVRM_GPU_IS_LOST, -ENODEV },
		      { 0xffff, -EIO } };
	struct context c = new_context(GPU, 8);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refuse(NVRM_DISABLE_CHANNELS, cases[i].status, 1);
		assert_int_equal(apply(c.queue, GP_STOP), cases[i].error);
		assert_int_equal(disabled(&c), 0);
		assert_int_equal(gp_nvrm_own.stopped(own), 0);
		/* What was not begun need not be undone. */
		assert_int_equal(rm.switches, cases[i].error == -EIO);
	}
}

static void a_stop_that_was_done_though_it_failed_is_undone(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	refuse(NVRM_DISABLE_CHANNELS, NVRM_TIMEOUT, 1);
	rm.fails_late = 1;
	assert_int_equal(apply(c.queue, GP_STOP), -ETIME);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_driver_that_is_busy_or_interrupted_is_asked_again(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	refuse(NVRM_DISABLE_CHANNELS, NVRM_BUSY_RETRY, 3);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
	refuse(NVRM_DISABLE_CHANNELS, 0, 3);
	rm.fail_errno = EINTR;
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
	refuse(NVRM_DISABLE_CHANNELS, NVRM_BUSY_RETRY, 100);
	rm.fail_errno = 0;
	assert_int_equal(apply(c.queue, GP_STOP), -EBUSY);
	rm.fail_times = 0;
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(disabled(&c), 0);
}

/* As by a driver that is about to be suspended: it says so of each call, for as long as that takes. */
static void a_driver_that_says_again_and_again_to_come_back_is_busy_and_refuses_nothing(void **state)
{
	static const int errors[] = { EAGAIN, EINTR };
	struct context c = new_context(GPU, 8);

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		rm.fail_errno = errors[i];
		refuse(NVRM_DISABLE_CHANNELS, 0, 100000);
		assert_int_equal(apply(c.queue, GP_STOP), -EBUSY);
		assert_true(rm.fail_times > 90000);
		refuse(NVRM_GET_TIMESLICE, 0, 100000);
		assert_int_equal(apply(c.queue, GP_BACKGROUND), -EBUSY);
		assert_true(rm.fail_times > 90000);
		rm.fail_times = 0;
		assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	}
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	refuse(NVRM_SET_TIMESLICE, 0, 100000);
	assert_int_equal(apply(c.queue, GP_RUN), -EBUSY);
	rm.fail_times = 0;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
	refuse(NVRM_DISABLE_CHANNELS, 0, 100000);
	assert_int_equal(apply(c.queue, GP_RUN), -EBUSY);
	assert_true(rm.fail_times > 90000);
	rm.fail_times = 0;
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(disabled(&c), 0);
}

static void a_resume_that_fails_counts_as_stopped_and_is_tried_again(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	refuse(NVRM_DISABLE_CHANNELS, 0xffff, 100000);
	assert_int_equal(apply(c.queue, GP_RUN), -EIO);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	assert_int_equal(queue_of(c.queue).stopped, 1);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), -EIO);
	rm.fail_times = 0;
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_channel_that_went_unseen_keeps_none_from_running(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	fake_drop(c.client, c.channel[0]);
	c.channel[0] = c.channel[--c.n];
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_channel_that_went_unseen_keeps_no_other_from_being_stopped(void **state)
{
	struct context c = new_context(GPU, 8), d = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(d.queue, GP_STOP), 0);
	fake_drop(c.client, c.channel[0]);
	c.channel[0] = c.channel[--c.n];
	for (int i = 0; i < 2; i++) {
		assert_int_equal(apply(c.queue, GP_STOP), 0);
		assert_int_equal(disabled(&c), 7);
		assert_int_equal(disabled(&d), 8);
		assert_int_equal(apply(c.queue, GP_RUN), 0);
		assert_int_equal(disabled(&c), 0);
	}
	rm.switches = 0;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(rm.switches, 1); /* it was found out once */
}

static void a_group_whose_channels_all_went_unseen_can_be_stopped_and_resumed(void **state)
{
	struct context c = new_context(GPU, 3);

	(void)state;
	for (uint32_t i = 0; i < c.n; i++)
		fake_drop(c.client, c.channel[i]);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	c.channel[0] = new_channel(c.client, c.group);
	c.n = 1;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 1);
}

static void a_subdevice_that_went_unseen_leaves_the_group_running_with_all_its_channels(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	fake_drop(c.client, c.subdevice);
	assert_int_equal(apply(c.queue, GP_STOP), -ENODEV);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	alloc(c.client, c.device, NVRM_SUBDEVICE, NULL);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
}

static void a_channel_that_the_driver_cannot_enable_keeps_no_other_from_running(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	refuse(NVRM_DISABLE_CHANNELS, 0xffff, 2); /* all of them, and then the first */
	assert_int_equal(apply(c.queue, GP_RUN), -EIO);
	assert_int_equal(disabled(&c), 1);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void without_a_subdevice_a_group_cannot_be_stopped_and_runs(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(free_as(fd, c.client, c.subdevice), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), -ENODEV);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	assert_int_equal(disabled(&c), 0);
}

static void any_subdevice_of_the_gpu_does(void **state)
{
	struct context c = new_context(GPU, 8);
	uint32_t other = new_device(c.client, OTHER_GPU), same = new_device(c.client, GPU);

	(void)state;
	alloc(c.client, other, NVRM_SUBDEVICE, NULL);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(free_as(fd, c.client, c.subdevice), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_RUN), -ENODEV); /* another GPU's does not */
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	alloc(c.client, same, NVRM_SUBDEVICE, NULL);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(disabled(&c), 0);
}

static void what_no_call_of_the_driver_does_is_refused(void **state)
{
	struct context c = new_context(GPU, 8);
	struct gp_apply_opts opts = { .size = sizeof(opts), .type = GP_PREEMPT_DRAIN };
	struct gp_want w = { .queue = c.queue, .want = GP_STOP };

	(void)state;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, &opts), -ENOTSUP);
	opts.type = GP_PREEMPT_RESET;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, &opts), -ENOTSUP);
	opts.type = GP_PREEMPT_SAVE;
	opts.way = GP_KFD_WAY_UPDATE;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, &opts), -ENOTSUP);
	w.want = 7;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, NULL), -EINVAL);
	assert_int_equal(rm.switches, 0);
	w.want = GP_STOP;
	opts.way = GP_NVRM_WAY_PARK;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, &opts), 0);
	assert_int_equal(rm.switches, 1);
}

static void calls_go_by_the_file_that_made_the_client(void **state)
{
	struct context c = new_context(GPU, 8);
	int moved;

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	close(fd);
	fd = open_another(); /* of the same number */
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
	close(moved);
}

static void stopping_and_resuming_leaves_no_descriptor_open(void **state)
{
	struct context c = new_context(GPU, 1);
	int before = fcntl(0, F_DUPFD_CLOEXEC, 256), after;

	(void)state;
	assert_true(before >= 0);
	assert_int_equal(close(before), 0);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	after = fcntl(0, F_DUPFD_CLOEXEC, 256);
	assert_int_equal(after, before); /* the lowest that is free */
	assert_int_equal(close(after), 0);
}

static void a_program_without_a_descriptor_left_can_be_stopped(void **state)
{
	struct context c = new_context(GPU, 8);
	int taken[8192], n = 0;

	(void)state;
	while (n < 8192 && (taken[n] = dup(0)) >= 0)
		n++;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	while (n--)
		close(taken[n]);
}

static void nothing_is_known_of_activity(void **state)
{
	struct context c = new_context(GPU, 8);
	struct gp_activity a[2] = { { .activity = 99 }, { .activity = 99 } };
	uint64_t queues[] = { c.queue, 77 };

	(void)state;
	assert_int_equal(gp_nvrm_own.activity(own, queues, 1, a), 0);
	assert_int_equal(a[0].activity, GP_ACTIVITY_UNKNOWN);
	assert_int_equal(gp_nvrm_own.finished(own, queues, 2, a), -ENOENT);
	assert_int_equal(a[1].activity, GP_ACTIVITY_UNKNOWN);
}

/* Slices */

static uint64_t slice(const struct context *c)
{
	return fake_find(c->client, c->group)->slice;
}

static void the_background_is_a_slice_of_1_us_and_a_resume_gives_the_drivers_own_back(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	assert_int_equal(slice(&c), 1);
	assert_int_equal(queue_of(c.queue).stopped, 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 1); /* so that the lease counts */
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
	assert_int_equal(rm.switches, 0);
}

static uint64_t longest_us;

static void note_slice(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;
	const struct nvrm_timeslice *s = (const void *)(uintptr_t)c->params;

	if ((unsigned int)request == NVRM_IOC_CONTROL && c->command == NVRM_SET_TIMESLICE &&
	    s->us > longest_us)
		longest_us = s->us;
}

static void a_slice_that_the_program_sets_is_given_back(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(set_slice(c.client, c.group, 4096), NVRM_OK);
	assert_int_equal(slice(&c), 4096);
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	assert_int_equal(slice(&c), 1);
	longest_us = 0;
	rm.before = note_slice;
	assert_int_equal(set_slice(c.client, c.group, 512), NVRM_OK);
	assert_int_equal(longest_us, 1); /* not for a moment */
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(slice(&c), 512);
}

static void a_stop_out_of_the_background_leaves_the_slice_and_a_resume_gives_both_back(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(slice(&c), 1);
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(slice(&c), 1);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
}

static void only_groups_for_compute_have_the_short_slice(void **state)
{
	struct context c = new_context(GPU, 8);
	uint32_t copy = new_group(c.client, c.device, COPY), late, channel;
	uint64_t queue = newest();

	(void)state;
	assert_int_equal(apply(queue, GP_BACKGROUND), 0);
	assert_int_equal(fake_find(c.client, copy)->slice, RM_DEFAULT_SLICE);
	late = new_group(c.client, c.device, 0);
	channel = new_channel(c.client, late);
	assert_int_equal(apply(newest(), GP_BACKGROUND), 0);
	assert_int_equal(fake_find(c.client, late)->slice, RM_DEFAULT_SLICE);
	alloc(c.client, channel, HOPPER_COMPUTE, NULL);
	assert_int_equal(fake_find(c.client, late)->slice, 1);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(fake_find(c.client, late)->slice, RM_DEFAULT_SLICE);
}

static void a_driver_that_refuses_slices_leaves_the_group_as_it_was(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	refuse(NVRM_GET_TIMESLICE, NVRM_NOT_SUPPORTED, 1); /* nobody could give it back */
	assert_int_equal(apply(c.queue, GP_BACKGROUND), -ENOTSUP);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
	refuse(NVRM_SET_TIMESLICE, NVRM_INSUFFICIENT_PERMISSIONS, 1);
	assert_int_equal(apply(c.queue, GP_BACKGROUND), -EPERM);
	refuse(NVRM_GET_TIMESLICE, NVRM_NOT_SUPPORTED, 100000);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	assert_int_equal(disabled(&c), 8);
}

/* With these the driver says that it has not begun. */
static int says_that_nothing_was_done(uint32_t status)
{
	static const uint32_t refusals[] = { NVRM_NOT_SUPPORTED,    NVRM_INVALID_COMMAND,
					     NVRM_INVALID_ARGUMENT, NVRM_INSUFFICIENT_PERMISSIONS,
					     NVRM_INVALID_CHANNEL,  NVRM_INVALID_OBJECT,
					     NVRM_INVALID_CLIENT,   NVRM_INVALID_OBJECT_HANDLE,
					     NVRM_GPU_IS_LOST,      NVRM_OBJECT_NOT_FOUND };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i] == status)
			return 1;
	return 0;
}

/* As if the driver said so of one control, done or not, for as long as somebody asks. */
static void meet_status(uint32_t command, uint32_t status, uint32_t is_late)
{
	static const uint32_t wants[] = { GP_BACKGROUND, GP_STOP, GP_RUN, GP_STOP };
	struct context c = new_context(GPU, 3);

	refuse(command, status, 100000);
	rm.fails_late = is_late;
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		int r = apply(c.queue, wants[i]);

		assert_true(r <= 0 && r != -EAGAIN);
	}
	rm.fail_times = rm.fails_late = 0;
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
	assert_int_equal(free_as(fd, c.client, c.client), NVRM_OK);
}

static void whatever_status_the_driver_answers_a_resume_gives_all_back_later(void **state)
{
	static const uint32_t commands[] = { NVRM_GET_TIMESLICE, NVRM_SET_TIMESLICE, NVRM_DISABLE_CHANNELS,
					     NVRM_GET_ID };

	(void)state;
	for (uint32_t status = 1; status <= 0xff; status++) { /* nvstatuscodes.h has fewer */
		if (status == NVRM_INVALID_CLIENT)
			continue; /* the client has gone, and all that was to be given back */
		for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
			for (uint32_t is_late = 0; is_late <= !says_that_nothing_was_done(status); is_late++)
				meet_status(commands[i], status, is_late);
	}
}

static void a_slice_that_was_set_though_the_call_failed_is_given_back(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	refuse(NVRM_SET_TIMESLICE, NVRM_TIMEOUT, 1);
	rm.fails_late = 1;
	assert_int_equal(apply(c.queue, GP_BACKGROUND), -ETIME);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_slice_that_cannot_be_given_back_keeps_nothing_stopped(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	refuse(NVRM_SET_TIMESLICE, 0xffff, 100000);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), -EIO);
	assert_int_equal(disabled(&c), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	rm.fail_times = 0;
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
}

static void a_stop_that_fails_in_the_background_leaves_it_there(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_BACKGROUND), 0);
	refuse(NVRM_DISABLE_CHANNELS, NVRM_NOT_SUPPORTED, 1);
	assert_int_equal(apply(c.queue, GP_STOP), -ENOTSUP);
	assert_int_equal(slice(&c), 1);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	assert_int_equal(gp_nvrm_own.resume_all(own, -1), 0);
	assert_int_equal(slice(&c), RM_DEFAULT_SLICE);
}

/* Meetings */

static struct context met;
static int meetings;

static void *free_group(void *arg)
{
	(void)arg;
	assert_int_equal(free_as(fd, met.client, met.group), NVRM_OK);
	return NULL;
}

static void free_meanwhile(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;
	static pthread_t thread;

	if ((unsigned int)request == NVRM_IOC_FREE)
		assert_int_equal(meetings, 2);
	if ((unsigned int)request != NVRM_IOC_CONTROL || c->command != NVRM_DISABLE_CHANNELS || meetings)
		return;
	meetings = 1;
	pthread_create(&thread, NULL, free_group, NULL);
	pthread_detach(thread);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	meetings = 2;
}

static void a_free_waits_for_a_stop_that_is_under_way(void **state)
{
	(void)state;
	met = new_context(GPU, 8);
	meetings = 0;
	rm.before = free_meanwhile;
	(void)apply(met.queue, GP_STOP);
	while (count())
		sched_yield();
	rm.before = NULL;
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void yield_meanwhile(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;

	if ((unsigned int)request == NVRM_IOC_CONTROL && c->command == NVRM_SET_TIMESLICE && !meetings++)
		assert_int_equal(apply(met.queue, GP_BACKGROUND), 0);
}

static void run_meanwhile(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;

	if ((unsigned int)request == NVRM_IOC_CONTROL && c->command == NVRM_SET_TIMESLICE && !meetings++)
		assert_int_equal(apply(met.queue, GP_RUN), 0);
}

static void a_want_that_passes_the_programs_slice_on_its_way_holds(void **state)
{
	(void)state;
	met = new_context(GPU, 8);
	meetings = 0;
	rm.before = yield_meanwhile;
	assert_int_equal(set_slice(met.client, met.group, 4096), NVRM_OK);
	assert_int_equal(slice(&met), 1);
	meetings = 0;
	rm.before = run_meanwhile;
	assert_int_equal(set_slice(met.client, met.group, 512), NVRM_OK);
	assert_int_equal(slice(&met), 512);
}

static void want_during_switch(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;
	uint32_t switches = rm.switches;

	if ((unsigned int)request != NVRM_IOC_CONTROL || c->command != NVRM_DISABLE_CHANNELS || meetings++)
		return;
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	assert_int_equal(apply(met.queue, GP_RUN), 0);
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	assert_int_equal(rm.switches, switches);
}

static void wants_that_meet_a_switch_of_the_programs_come_after_it(void **state)
{
	(void)state;
	met = new_context(GPU, 4);
	for (int disable = 1; disable >= 0; disable--) {
		meetings = 0;
		rm.before = want_during_switch;
		assert_int_equal(switch_own(&met, (uint8_t)disable, 4), NVRM_OK);
		rm.before = NULL;
		assert_int_equal(disabled(&met), 4);
		assert_int_equal(apply(met.queue, GP_RUN), 0);
		assert_int_equal(disabled(&met), disable ? 4 : 0);
	}
}

static void run_during_switch(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;

	if ((unsigned int)request == NVRM_IOC_CONTROL && c->command == NVRM_DISABLE_CHANNELS && !meetings++)
		assert_int_equal(apply(met.queue, GP_RUN), 0);
}

static void a_resume_that_meets_a_switch_and_fails_after_it_is_owed(void **state)
{
	struct gp_want w = { .want = GP_RUN };

	(void)state;
	met = new_context(GPU, 4);
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	meetings = 0;
	rm.before = run_during_switch;
	refuse(NVRM_DISABLE_CHANNELS, NVRM_TIMEOUT, 1 + 1 + 4); /* theirs; ours for all, and for each */
	assert_int_equal(switch_own(&met, 1, 4), NVRM_TIMEOUT);
	rm.before = NULL;
	assert_int_equal(rm.fail_times, 0);
	assert_int_equal(disabled(&met), 4);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
	w.queue = met.queue;
	assert_int_equal(gp_nvrm_own.apply(own, -1, &w, 1, NULL), 0);
	assert_int_equal(disabled(&met), 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_driver_that_fails_after_a_switch_is_asked_once_for_each_group(void **state)
{
	struct context c = new_context(GPU, 8);
	uint32_t before;

	(void)state;
	assert_int_equal(switch_own(&c, 1, 8), NVRM_OK);
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	before = rm.controls;
	refuse(NVRM_DISABLE_CHANNELS, NVRM_TIMEOUT, 100);
	rm.fails_late = 1; /* it is done, and said not to be */
	assert_int_equal(switch_own(&c, 0, 8), NVRM_TIMEOUT);
	assert_true(rm.controls - before <= 2);
	rm.fail_times = rm.fails_late = 0;
	assert_int_equal(switch_own(&c, 0, 8), NVRM_OK);
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static void switch_twice(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;
	uint32_t switches;

	if ((unsigned int)request != NVRM_IOC_CONTROL || c->command != NVRM_DISABLE_CHANNELS || meetings++)
		return;
	assert_int_equal(switch_own(&met, 0, 4), NVRM_OK); /* a handler, or another thread */
	switches = rm.switches;
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	assert_int_equal(apply(met.queue, GP_RUN), 0);
	assert_int_equal(rm.switches, switches);
}

static void the_first_of_two_switches_that_ends_leaves_the_channels_to_the_other(void **state)
{
	(void)state;
	met = new_context(GPU, 4);
	meetings = 0;
	rm.before = switch_twice;
	assert_int_equal(switch_own(&met, 1, 4), NVRM_OK);
	rm.before = NULL;
	assert_int_equal(disabled(&met), 4);
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	assert_int_equal(apply(met.queue, GP_RUN), 0);
	assert_int_equal(disabled(&met), 4);
	assert_int_equal(switch_own(&met, 0, 4), NVRM_OK);
	assert_int_equal(disabled(&met), 0);
}

static void what_the_program_enables_though_it_is_refused_stands_still_again(void **state)
{
	struct context c = new_context(GPU, 8);

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	refuse(NVRM_DISABLE_CHANNELS, NVRM_TIMEOUT, 1);
	rm.fails_late = 1;
	assert_int_equal(switch_own(&c, 0, 4), NVRM_TIMEOUT);
	rm.fails_late = 0;
	assert_int_equal(disabled(&c), 8);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), 0);
}

static pthread_t switching;

static void *switch_group(void *arg)
{
	(void)arg;
	assert_int_equal(switch_own(&met, 1, 4), NVRM_OK);
	return NULL;
}

static void switch_meanwhile(unsigned long request, const void *args)
{
	const struct nvrm_control *c = args;

	if ((unsigned int)request != NVRM_IOC_CONTROL || c->command != NVRM_DISABLE_CHANNELS)
		return;
	assert_int_not_equal(meetings, 1);
	if (meetings)
		return;
	meetings = 1;
	pthread_create(&switching, NULL, switch_group, NULL);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	meetings = 2;
}

static void a_switch_of_the_programs_waits_for_a_resume_that_is_under_way(void **state)
{
	(void)state;
	met = new_context(GPU, 4);
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	meetings = 0;
	rm.before = switch_meanwhile;
	assert_int_equal(apply(met.queue, GP_RUN), 0);
	pthread_join(switching, NULL);
	rm.before = NULL;
	assert_int_equal(disabled(&met), 4); /* the program's is the later */
}

static void want_during_free(unsigned long request, const void *args)
{
	(void)args;
	if ((unsigned int)request != NVRM_IOC_FREE)
		return;
	assert_int_equal(apply(met.queue, GP_STOP), -ENOENT);
	assert_int_equal(apply(met.queue, GP_RUN), 0);
	assert_int_equal(rm.switches, 1); /* the one before */
}

static void nothing_is_called_about_what_is_being_freed_and_a_resume_is_not_lost(void **state)
{
	int other = open_another();

	(void)state;
	met = new_context(GPU, 8);
	assert_int_equal(apply(met.queue, GP_STOP), 0);
	rm.before = want_during_free;
	assert_int_equal(free_as(other, met.client, met.group), NVRM_INVALID_CLIENT);
	assert_int_equal(disabled(&met), 0);
	rm.switches = 1;
	assert_int_equal(free_as(fd, met.client, met.group), NVRM_OK);
	assert_int_equal(count(), 0);
	close(other);
}

#define RACE_CALLS 2000
static int race_over, race_switched; /* by the program: its first four */

static void *change_at_random(void *arg)
{
	struct context *c = arg;
	unsigned int seed = 7;

	for (int i = 0; i < RACE_CALLS; i++) {
		if (rand_r(&seed) % 2)
			(void)set_slice(c->client, c->group, 1000 + (uint64_t)i);
		else if (rand_r(&seed) % 4 == 0)
			race_switched ^= switch_own(c, !race_switched, 4) == NVRM_OK;
		else if (c->n < 40)
			c->channel[c->n++] = new_channel(c->client, c->group);
		else
			(void)free_as(fd, c->client, c->channel[--c->n]);
	}
	__atomic_store_n(&race_over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void calls_and_wants_at_random_end_in_the_last_wish(void **state)
{
	struct context c = new_context(GPU, 8);
	unsigned int seed = 3;
	pthread_t thread;
	uint32_t want = GP_RUN;

	(void)state;
	race_over = race_switched = 0;
	pthread_create(&thread, NULL, change_at_random, &c);
	while (!__atomic_load_n(&race_over, __ATOMIC_ACQUIRE)) {
		want = (uint32_t)rand_r(&seed) % 3;
		assert_int_equal(apply(c.queue, want), 0);
	}
	pthread_join(thread, NULL);
	assert_int_equal(disabled(&c), want == GP_STOP ? c.n : race_switched ? 4 : 0);
	assert_int_equal(apply(c.queue, GP_RUN), 0);
	assert_int_equal(disabled(&c), race_switched ? 4 : 0);
	assert_true(slice(&c) >= 1000);
}

/* Limits and children */

static void more_groups_than_there_are_places_run_unseen(void **state)
{
	struct context c = new_context(GPU, 1);

	(void)state;
	for (uint32_t i = 0; i < GP_OWN_MOST + 10; i++)
		new_group(c.client, c.device, GR);
	assert_int_equal(count(), GP_OWN_MOST);
	assert_int_equal(free_as(fd, c.client, c.client), NVRM_OK);
	assert_int_equal(count(), 0);
}

/* A driver that takes everything, and is quicker than a table. */
static int take_anything(int f, unsigned long request, void *args)
{
	(void)f;
	if ((unsigned int)request == NVRM_IOC_ALLOC)
		((struct nvrm_alloc *)args)->status = NVRM_OK;
	if ((unsigned int)request == NVRM_IOC_CONTROL)
		((struct nvrm_control *)args)->status = NVRM_OK;
	return 0;
}

static void a_group_of_which_not_all_channels_are_known_is_not_stopped(void **state)
{
	uint64_t queue;

	(void)state;
	gp_nvrm_own.free(own);
	assert_int_equal(gp_nvrm_own.make(take_anything, NULL, NULL, &own), 0);
	alloc_as(fd, 0, 0, 1, NVRM_ROOT_CLIENT, NULL);
	alloc_as(fd, 1, 1, 2, NVRM_DEVICE, NULL);
	alloc_as(fd, 1, 2, 3, NVRM_SUBDEVICE, NULL);
	alloc_as(fd, 1, 2, 4, NVRM_GROUP, NULL);
	queue = newest();
	for (uint32_t i = 0; i < 8000; i++)
		alloc_as(fd, 1, 4, 5 + i, HOPPER_CHANNEL, NULL);
	assert_int_equal(apply(queue, GP_STOP), 0);
	assert_int_equal(apply(queue, GP_RUN), 0);
	for (uint32_t i = 8000; i < 8200; i++)
		alloc_as(fd, 1, 4, 5 + i, HOPPER_CHANNEL, NULL);
	assert_int_equal(apply(queue, GP_STOP), -ENOSPC);
	assert_int_equal(gp_nvrm_own.stopped(own), 0);
}

static void a_table_that_is_full_is_the_drivers_to_say(void **state)
{
	struct context c = new_context(GPU, 1);
	struct nvrm_alloc a = { .client = c.client, .parent = c.device, .object_class = NVRM_GROUP };

	(void)state;
	rm.room = 1;
	assert_int_equal(gp_nvrm_own.call(own, fd, NVRM_IOC_ALLOC, &a, -1), 0);
	assert_int_equal(a.status, 0x1a);
	assert_int_equal(count(), 1);
}

static void a_child_begins_without_queues(void **state)
{
	struct context c = new_context(GPU, 8);
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(apply(c.queue, GP_STOP), 0);
	child = fork();
	if (child == 0) {
		gp_nvrm_own.forget(own);
		_exit(count() || gp_nvrm_own.stopped(own) || apply(c.queue, GP_RUN) != -ENOENT);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(gp_nvrm_own.stopped(own), 1);
}

static void what_the_thread_holds_open_is_no_file_of_a_client(void **state)
{
	int held;

	(void)state;
	held = gp_nvrm_own.open(own);
	assert_true(held >= 0);
	assert_true(fcntl(held, F_GETFL) & O_PATH);
	close(held);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls_about_objects_are_wanted_and_no_others),
		T(a_group_is_a_queue_with_its_gpu_and_kind),
		T(the_longer_allocation_is_one_too),
		T(what_the_driver_refuses_to_allocate_is_no_queue),
		T(objects_on_another_file_are_none),
		T(a_group_without_an_engine_is_what_is_put_on_its_channels),
		T(every_engine_has_its_kind),
		T(channels_of_every_generation_are_known),
		T(a_channel_in_no_group_is_a_queue_of_its_own),
		T(contexts_on_two_gpus_are_told_apart),
		T(a_group_that_came_before_the_subdevice_learns_its_gpu),
		T(a_duplicated_subdevice_does_as_the_first),
		T(a_group_that_is_freed_is_gone_with_its_channels),
		T(of_a_queue_that_changed_and_went_only_its_end_is_told),
		T(freeing_a_device_or_a_client_takes_all_below_and_nothing_else),
		T(a_device_that_is_freed_leaves_the_channels_of_another),
		T(places_are_used_again_and_numbers_are_not),
		T(a_channel_that_is_freed_is_not_spoken_of_again),
		T(a_free_that_the_driver_refuses_changes_nothing),
		T(a_handle_that_comes_again_is_a_new_object),
		T(a_client_whose_file_was_closed_is_gone_when_somebody_asks),
		T(a_client_that_has_the_handle_of_one_whose_file_was_closed_is_another),
		T(other_calls_have_the_drivers_results),
		T(a_stop_disables_all_channels_in_one_call_and_a_resume_enables_them),
		T(more_channels_than_a_call_takes_are_several_calls),
		T(groups_that_are_stopped_together_are_one_call),
		T(one_call_is_for_one_client_on_one_gpu_and_for_what_is_to_be_alike),
		T(a_call_for_several_groups_that_failed_stopped_none_of_them),
		T(a_channel_that_is_added_to_a_stopped_group_is_disabled_too),
		T(what_the_program_has_disabled_a_resume_leaves_so),
		T(what_the_program_enables_stands_still_as_long_as_its_group_is_stopped),
		T(a_switch_of_the_programs_that_is_refused_changes_nothing),
		T(a_driver_that_refuses_says_why_and_the_group_runs),
		T(a_stop_that_was_done_though_it_failed_is_undone),
		T(a_driver_that_is_busy_or_interrupted_is_asked_again),
		T(a_driver_that_says_again_and_again_to_come_back_is_busy_and_refuses_nothing),
		T(a_resume_that_fails_counts_as_stopped_and_is_tried_again),
		T(a_channel_that_went_unseen_keeps_none_from_running),
		T(a_subdevice_that_went_unseen_leaves_the_group_running_with_all_its_channels),
		T(a_channel_that_went_unseen_keeps_no_other_from_being_stopped),
		T(a_group_whose_channels_all_went_unseen_can_be_stopped_and_resumed),
		T(a_channel_that_the_driver_cannot_enable_keeps_no_other_from_running),
		T(without_a_subdevice_a_group_cannot_be_stopped_and_runs),
		T(any_subdevice_of_the_gpu_does),
		T(what_no_call_of_the_driver_does_is_refused),
		T(calls_go_by_the_file_that_made_the_client),
		T(a_program_without_a_descriptor_left_can_be_stopped),
		T(stopping_and_resuming_leaves_no_descriptor_open),
		T(nothing_is_known_of_activity),
		T(the_background_is_a_slice_of_1_us_and_a_resume_gives_the_drivers_own_back),
		T(a_slice_that_the_program_sets_is_given_back),
		T(a_stop_out_of_the_background_leaves_the_slice_and_a_resume_gives_both_back),
		T(only_groups_for_compute_have_the_short_slice),
		T(a_driver_that_refuses_slices_leaves_the_group_as_it_was),
		T(whatever_status_the_driver_answers_a_resume_gives_all_back_later),
		T(a_slice_that_was_set_though_the_call_failed_is_given_back),
		T(a_slice_that_cannot_be_given_back_keeps_nothing_stopped),
		T(a_stop_that_fails_in_the_background_leaves_it_there),
		T(a_free_waits_for_a_stop_that_is_under_way),
		T(wants_that_meet_a_switch_of_the_programs_come_after_it),
		T(a_resume_that_meets_a_switch_and_fails_after_it_is_owed),
		T(a_driver_that_fails_after_a_switch_is_asked_once_for_each_group),
		T(the_first_of_two_switches_that_ends_leaves_the_channels_to_the_other),
		T(what_the_program_enables_though_it_is_refused_stands_still_again),
		T(a_switch_of_the_programs_waits_for_a_resume_that_is_under_way),
		T(nothing_is_called_about_what_is_being_freed_and_a_resume_is_not_lost),
		T(a_want_that_passes_the_programs_slice_on_its_way_holds),
		T(calls_and_wants_at_random_end_in_the_last_wish),
		T(more_groups_than_there_are_places_run_unseen),
		T(a_group_of_which_not_all_channels_are_known_is_not_stopped),
		T(a_table_that_is_full_is_the_drivers_to_say),
		T(a_child_begins_without_queues),
		T(what_the_thread_holds_open_is_no_file_of_a_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
