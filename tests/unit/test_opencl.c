// SPDX-License-Identifier: MIT
/* OpenCL's door on a runtime that the test makes up: it says when launches end, what fails, and what was
 * kept. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "level/api.h"
#include "level/opencl_table.h"

#define ENTRIES 149u /* ocl-icd 2.3.1's */
#define MOST 64
#define FAILED (-5)

int32_t clInitLayer(uint32_t n, void *const *target, uint32_t *ret_n, void *const **ret_layer);
int32_t clGetLayerInfo(uint32_t what, size_t size, void *value, size_t *ret_size);
extern const struct gp_level_api gpreempt_level;

/* A queue or an event: it counts who has it. The engine's thread sets and releases events too. */
struct cl_object {
	int32_t references, status;
	gp_cl_callback *callback;
	void *data;
	uint32_t nwaits;
	gp_cl waits[40];
};

static struct cl_object objects[MOST], *launches[MOST];
static int nobjects, nlaunches;
static int user_event_fails, launch_fails, callback_fails;
static void *table[ENTRIES];
static void *const *layer;

static int32_t read_one(const int32_t *number)
{
	return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

static gp_cl new_object(void)
{
	gp_cl o = &objects[nobjects++];

	assert_true(nobjects <= MOST);
	*o = (struct cl_object){ .references = 1, .status = 3 };
	return o;
}

static gp_cl make_queue(gp_cl context, gp_cl device, uint64_t properties, int32_t *ret_error)
{
	(void)context, (void)device, (void)properties, (void)ret_error;
	return new_object();
}

static gp_cl make_queue_with(gp_cl context, gp_cl device, const uint64_t *properties, int32_t *ret_error)
{
	(void)context, (void)device, (void)properties, (void)ret_error;
	return new_object();
}

static int32_t retain(gp_cl o)
{
	assert_true(__atomic_fetch_add(&o->references, 1, __ATOMIC_SEQ_CST) > 0);
	return GP_CL_SUCCESS;
}

static int32_t release(gp_cl o)
{
	assert_true(__atomic_fetch_sub(&o->references, 1, __ATOMIC_SEQ_CST) > 0);
	return GP_CL_SUCCESS;
}

static gp_cl make_user_event(gp_cl context, int32_t *ret_error)
{
	(void)context, (void)ret_error;
	return user_event_fails ? NULL : new_object();
}

static int32_t set_status(gp_cl event, int32_t status)
{
	assert_true(read_one(&event->references) > 0);
	assert_int_not_equal(__atomic_exchange_n(&event->status, status, __ATOMIC_SEQ_CST),
			     status); /* once */
	return GP_CL_SUCCESS;
}

static int32_t set_callback(gp_cl event, int32_t type, gp_cl_callback *callback, void *data)
{
	assert_int_equal(type, GP_CL_COMPLETE);
	if (callback_fails)
		return FAILED;
	event->callback = callback;
	event->data = data;
	return GP_CL_SUCCESS;
}

static int32_t make_launch(gp_cl queue, gp_cl kernel, uint32_t dimensions, const size_t *offset,
			   const size_t *global, const size_t *local, uint32_t nwaits, const gp_cl *waits,
			   gp_cl *ret_event)
{
	gp_cl o;

	assert_true(queue->references > 0 && !kernel && dimensions == 1 && !offset && *global == 64 &&
		    *local == 8);
	if (launch_fails)
		return FAILED;
	o = new_object();
	o->references = ret_event ? 2 : 1; /* one is the runtime's, until it has ended */
	o->nwaits = nwaits;
	for (uint32_t i = 0; i < nwaits; i++) {
		assert_true(waits[i]->references > 0);
		o->waits[i] = waits[i];
	}
	launches[nlaunches++] = o;
	if (ret_event)
		*ret_event = o;
	return GP_CL_SUCCESS;
}

static void end(int i, int32_t status)
{
	gp_cl o = launches[i];

	o->status = status;
	if (o->callback)
		o->callback(o, status, o->data);
	release(o);
}

#define PUT(place, function) (table[place] = (void *)(function))

static int begin(void **state)
{
	uint32_t n;

	(void)state;
	nobjects = nlaunches = user_event_fails = launch_fails = callback_fails = 0;
	if (layer)
		return 0;
	PUT(GP_CL_CREATE_QUEUE, make_queue);
	PUT(GP_CL_CREATE_QUEUE_WITH, make_queue_with);
	PUT(GP_CL_RETAIN_QUEUE, retain);
	PUT(GP_CL_RELEASE_QUEUE, release);
	PUT(GP_CL_RETAIN_EVENT, retain);
	PUT(GP_CL_RELEASE_EVENT, release);
	PUT(GP_CL_LAUNCH, make_launch);
	PUT(GP_CL_USER_EVENT, make_user_event);
	PUT(GP_CL_SET_STATUS, set_status);
	PUT(GP_CL_SET_CALLBACK, set_callback);
	return clInitLayer(ENTRIES, table, &n, &layer);
}

/* Until it holds; only a fault lets the time pass. */
#define EVENTUALLY(condition) \
	do { \
		for (int tries = 0; !(condition) && tries < 30000; tries++) \
			usleep(1000); \
		assert_true(condition); \
	} while (0)

/* Whatever was made is nobody's any more: neither ours nor the runtime's. */
static void assert_all_released(void)
{
	for (int i = 0; i < nobjects; i++)
		EVENTUALLY(read_one(&objects[i].references) == 0);
}

/* What a program calls */

static gp_cl new_queue(const uint64_t *properties)
{
	gp_cl_create_queue_with *create = (gp_cl_create_queue_with *)layer[GP_CL_CREATE_QUEUE_WITH];

	return create(NULL, NULL, properties, NULL);
}

static const uint64_t low[] = { GP_CL_QUEUE_PRIORITY, GP_CL_PRIORITY_LOW, 0 };
static const uint64_t high[] = { GP_CL_QUEUE_PRIORITY, GP_CL_PRIORITY_HIGH, 0 };

static int32_t launch(gp_cl queue, uint32_t nwaits, const gp_cl *waits, gp_cl *ret_event)
{
	const size_t global = 64, local = 8;

	return ((gp_cl_launch *)layer[GP_CL_LAUNCH])(queue, NULL, 1, NULL, &global, &local, nwaits, waits,
						     ret_event);
}

static void let_go(gp_cl queue)
{
	assert_int_equal(((gp_cl_count *)layer[GP_CL_RELEASE_QUEUE])(queue), GP_CL_SUCCESS);
}

/* The event that the i-th launch waits for last. */
static gp_cl gate_of(int i)
{
	return launches[i]->nwaits ? launches[i]->waits[launches[i]->nwaits - 1] : NULL;
}

static int may_begin(int i)
{
	return !gate_of(i) || read_one(&gate_of(i)->status) == GP_CL_COMPLETE;
}

static struct gp_level_state state_of(gp_cl queue)
{
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);
	struct gp_level_state s;

	assert_non_null(q);
	assert_int_equal(gpreempt_level.state(q, &s), 0);
	gpreempt_level.put(q);
	return s;
}

static void a_layer_that_is_started_again_passes_everything_on(void **state)
{
	void *const *second;
	uint32_t n = 0;

	(void)state;
	assert_ptr_not_equal(layer, table);
	assert_int_equal(clInitLayer(ENTRIES, layer, &n, &second), GP_CL_SUCCESS);
	assert_ptr_equal(second, layer); /* else it would call itself */
	assert_int_equal(n, ENTRIES);
	assert_int_equal(clInitLayer(ENTRIES, NULL, &n, &second), GP_CL_INVALID_VALUE);
}

static void a_layer_stands_before_queues_and_launches_and_nothing_else(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < ENTRIES; i++)
		assert_int_equal(layer[i] != table[i], i == GP_CL_CREATE_QUEUE ||
							       i == GP_CL_CREATE_QUEUE_WITH ||
							       i == GP_CL_RETAIN_QUEUE ||
							       i == GP_CL_RELEASE_QUEUE || i == GP_CL_LAUNCH);
}

static void a_layer_says_its_name_and_version(void **state)
{
	uint32_t version = 0;
	char name[16];
	size_t size;

	(void)state;
	assert_int_equal(clGetLayerInfo(GP_CL_LAYER_API_VERSION, sizeof(version), &version, &size), 0);
	assert_true(version == 100 && size == sizeof(version));
	assert_int_equal(clGetLayerInfo(GP_CL_LAYER_NAME, sizeof(name), name, &size), 0);
	assert_string_equal(name, "gpreempt");
	assert_int_equal(clGetLayerInfo(GP_CL_LAYER_NAME, 3, name, NULL), GP_CL_INVALID_VALUE);
	assert_int_equal(clGetLayerInfo(7, sizeof(name), name, NULL), GP_CL_INVALID_VALUE);
}

static void the_third_launch_begins_when_the_first_has_ended(void **state)
{
	gp_cl queue = new_queue(low);

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < i + 2 && j < 5; j++)
			EVENTUALLY(may_begin(j));
		for (int j = i + 2; j < 5; j++)
			assert_false(may_begin(j));
		end(i, GP_CL_COMPLETE);
	}
	assert_int_equal(state_of(queue).ended, 5);
	let_go(queue);
	assert_all_released();
}

static void the_programs_wait_list_and_event_are_its_own(void **state)
{
	gp_cl queue = new_queue(low), waits[30], event = NULL;

	(void)state;
	for (int i = 0; i < 30; i++)
		waits[i] = new_object();
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_int_equal(launch(queue, 3, waits, &event), GP_CL_SUCCESS);
	assert_int_equal(launch(queue, 30, waits, NULL), GP_CL_SUCCESS); /* more than fit on a stack */
	assert_ptr_equal(event, launches[3]);
	assert_int_equal(launches[3]->nwaits, 4);
	assert_memory_equal(launches[3]->waits, waits, 3 * sizeof(*waits));
	assert_int_equal(launches[4]->nwaits, 31);
	assert_memory_equal(launches[4]->waits, waits, 30 * sizeof(*waits));
	for (int i = 0; i < 5; i++)
		end(i, GP_CL_COMPLETE);
	assert_int_equal(event->references, 1); /* the program's */
	release(event);
	for (int i = 0; i < 30; i++)
		release(waits[i]);
	let_go(queue);
	assert_all_released();
}

static void a_launch_whose_end_nobody_tells_is_over_when_a_later_one_is(void **state)
{
	gp_cl queue = new_queue(low);

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_int_equal(state_of(queue).ended, 0);
	end(1, GP_CL_COMPLETE); /* the first has failed, and its callback does not come */
	assert_int_equal(state_of(queue).ended, 2);
	EVENTUALLY(may_begin(3));
	end(0, FAILED); /* or late */
	assert_int_equal(state_of(queue).ended, 2);
	end(2, GP_CL_COMPLETE);
	end(3, FAILED);
	assert_int_equal(state_of(queue).ended, 4);
	let_go(queue);
	assert_all_released();
}

static void a_launch_that_the_runtime_refuses_is_refused_and_keeps_nobody(void **state)
{
	gp_cl queue = new_queue(low), event = NULL;

	(void)state;
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	launch_fails = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(queue, 0, NULL, &event), FAILED);
	launch_fails = 0;
	assert_null(event);
	assert_int_equal(state_of(queue).begun, 4);
	assert_int_equal(state_of(queue).ended, 3); /* of the first it says nothing */
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	EVENTUALLY(may_begin(1));
	end(0, GP_CL_COMPLETE);
	end(1, GP_CL_COMPLETE);
	let_go(queue);
	assert_all_released();
}

static void without_an_event_or_a_callback_launches_go_on(void **state)
{
	gp_cl queue = new_queue(low), event = NULL;

	(void)state;
	user_event_fails = 1;
	for (int i = 0; i < 4; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	EVENTUALLY(may_begin(3));
	user_event_fails = 0;
	callback_fails = 1;
	assert_int_equal(launch(queue, 0, NULL, &event), GP_CL_SUCCESS);
	EVENTUALLY(may_begin(4));
	release(event);
	for (int i = 0; i < 5; i++)
		end(i, GP_CL_COMPLETE);
	let_go(queue);
	assert_all_released();
}

static void what_was_launched_to_a_queue_that_is_released_begins(void **state)
{
	gp_cl queue = new_queue(low);
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);

	(void)state;
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_false(may_begin(0)); /* the first too: it is held */
	assert_int_equal(((gp_cl_count *)layer[GP_CL_RETAIN_QUEUE])(queue), GP_CL_SUCCESS);
	let_go(queue);
	assert_false(may_begin(0)); /* the program has it still */
	let_go(queue);
	for (int i = 0; i < 4; i++)
		EVENTUALLY(may_begin(i));
	assert_null(gpreempt_level.find(queue, 0));
	gpreempt_level.put(q);
	for (int i = 0; i < 4; i++)
		end(i, GP_CL_COMPLETE);
	assert_all_released();
}

static void a_held_queue_begins_nothing_and_then_goes_on_by_twos(void **state)
{
	gp_cl queue = new_queue(low);
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	end(0, GP_CL_COMPLETE);
	end(1, GP_CL_COMPLETE);
	assert_false(may_begin(2));
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_int_equal(gpreempt_level.let_go(q, GP_HOLDER_PROGRAM), 0);
	EVENTUALLY(may_begin(2) && may_begin(3));
	assert_false(may_begin(4));
	gpreempt_level.put(q);
	for (int i = 2; i < 5; i++)
		end(i, GP_CL_COMPLETE);
	let_go(queue);
	assert_all_released();
}

static void a_program_may_set_how_many_begin(void **state)
{
	gp_cl queue = new_queue(low);
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_false(may_begin(2));
	assert_int_equal(gpreempt_level.set_depth(q, 4), 0);
	EVENTUALLY(may_begin(2) && may_begin(3));
	assert_false(may_begin(4));
	gpreempt_level.put(q);
	for (int i = 0; i < 5; i++)
		end(i, GP_CL_COMPLETE);
	let_go(queue);
	assert_all_released();
}

static void a_held_queue_begins_nothing_for_which_there_is_room(void **state)
{
	gp_cl queue = new_queue(low);
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);

	(void)state;
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	end(0, GP_CL_COMPLETE);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_int_equal(launch(queue, 0, NULL, NULL), GP_CL_SUCCESS);
	assert_false(may_begin(1));
	assert_int_equal(gpreempt_level.let_go(q, GP_HOLDER_PROGRAM), 0);
	EVENTUALLY(may_begin(1));
	end(1, GP_CL_COMPLETE);
	gpreempt_level.put(q);
	let_go(queue);
	assert_all_released();
}

static void a_queues_own_priority_is_its_class_and_others_pass_untouched(void **state)
{
	static const uint64_t unordered[] = { GP_CL_QUEUE_PRIORITY, GP_CL_PRIORITY_LOW,
					      GP_CL_QUEUE_PROPERTIES, GP_CL_OUT_OF_ORDER, 0 };
	gp_cl_create_queue *create = (gp_cl_create_queue *)layer[GP_CL_CREATE_QUEUE];
	gp_cl plain = new_queue(NULL), offline = new_queue(low), online = new_queue(high);
	gp_cl queues[] = { plain,
			   offline,
			   online,
			   new_queue(unordered),
			   create(NULL, NULL, GP_CL_OUT_OF_ORDER, NULL),
			   create(NULL, NULL, 0, NULL) };

	(void)state;
	assert_int_equal(state_of(plain).client_class, GP_CLASS_UNKNOWN);
	assert_int_equal(state_of(offline).client_class, GP_CLASS_OFFLINE);
	assert_int_equal(state_of(online).client_class, GP_CLASS_ONLINE);
	assert_null(gpreempt_level.find(queues[3], 0)); /* there a launch may wait for a later one */
	assert_null(gpreempt_level.find(queues[4], 0));
	assert_int_equal(state_of(queues[5]).client_class, GP_CLASS_UNKNOWN);
	for (int i = 0; i < 4; i++)
		assert_int_equal(launch(plain, 0, NULL, NULL) | launch(queues[4], 0, NULL, NULL),
				 GP_CL_SUCCESS);
	for (int i = 0; i < 8; i++) {
		assert_true(!gate_of(i) && !launches[i]->callback);
		end(i, GP_CL_COMPLETE);
	}
	for (int i = 0; i < 6; i++)
		let_go(queues[i]);
	assert_all_released();
}

static void assert_passed_on(uint32_t entries, const char *said)
{
	void *const *passed = NULL;
	char doors[512];
	uint32_t n = 0;

	assert_int_equal(clInitLayer(entries, table, &n, &passed), GP_CL_SUCCESS);
	assert_ptr_equal(passed, table);
	assert_int_equal(n, entries);
	gpreempt_level.doors(doors, sizeof(doors));
	assert_string_equal(doors, said);
}

/* Before it is open. */
static void tables_that_lack_something_are_passed_on(void **state)
{
	(void)state;
	PUT(GP_CL_CREATE_QUEUE, make_queue); /* and nothing else */
	assert_passed_on(ENTRIES,
			 "opencl: shut: the loader's table is of another size, or an entry is empty\n");
	setenv("GPREEMPT_LEVEL", "off", 1);
	assert_passed_on(ENTRIES, "opencl: shut: GPREEMPT_LEVEL is off\n");
	unsetenv("GPREEMPT_LEVEL");
	assert_passed_on(GP_CL_CREATE_QUEUE_WITH,
			 "opencl: shut: the loader's table is of another size, or an entry is empty\n");
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_that_lack_something_are_passed_on),
		TEST(a_layer_that_is_started_again_passes_everything_on),
		TEST(a_layer_stands_before_queues_and_launches_and_nothing_else),
		TEST(a_layer_says_its_name_and_version),
		TEST(the_third_launch_begins_when_the_first_has_ended),
		TEST(the_programs_wait_list_and_event_are_its_own),
		TEST(a_launch_whose_end_nobody_tells_is_over_when_a_later_one_is),
		TEST(a_launch_that_the_runtime_refuses_is_refused_and_keeps_nobody),
		TEST(without_an_event_or_a_callback_launches_go_on),
		TEST(what_was_launched_to_a_queue_that_is_released_begins),
		TEST(a_held_queue_begins_nothing_and_then_goes_on_by_twos),
		TEST(a_program_may_set_how_many_begin),
		TEST(a_held_queue_begins_nothing_for_which_there_is_room),
		TEST(a_queues_own_priority_is_its_class_and_others_pass_untouched),
	};

	return cmocka_run_group_tests_name("opencl", tests, NULL, NULL);
}
