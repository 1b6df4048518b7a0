// SPDX-License-Identifier: MIT
/* ROCr's door on tables that the test makes up, as each release has them; and the packets that go through it.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "level/aql.h"
#include "level/api.h"
#include "level/internal.h"
#include "level/rocr_tables.h"

#define MOST 128

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed, const char *const *failed);
void OnUnload(void);
extern const struct gp_level_api gpreempt_level;

static struct {
	struct gp_hsa_version version;
	void *entry[MOST];
} core, amd;
static struct gp_hsa_tables root;
static char why[256];

static int nothing(void)
{
	return 0;
}

/* Major ids of root, core and AMD's, and how many entries the latter two have. */
static void make(uint32_t root_id, uint32_t core_id, uint32_t amd_id, uint32_t ncore, uint32_t namd)
{
	root = (struct gp_hsa_tables){ .version = { .major_id = root_id, .minor_id = 48 },
				       .core = (void *)&core,
				       .amd = (void *)&amd };
	core.version = (struct gp_hsa_version){ .major_id = core_id, .minor_id = 16 + 8 * ncore };
	amd.version = (struct gp_hsa_version){ .major_id = amd_id, .minor_id = 16 + 8 * namd };
	for (uint32_t i = 0; i < MOST; i++) {
		core.entry[i] = i < ncore ? (void *)nothing : NULL;
		amd.entry[i] = i < namd ? (void *)nothing : NULL;
	}
}

static void assert_places(uint32_t intercept_create)
{
	struct gp_rocr_entries e;

	assert_int_equal(gp_rocr_entries(&root, &e, why, sizeof(why)), 0);
	assert_ptr_equal(e.queue_create, &core.entry[7]);
	assert_ptr_equal(e.queue_destroy, &core.entry[9]);
	assert_ptr_equal(e.signal_create, &core.entry[37]);
	assert_ptr_equal(e.signal_wait, &core.entry[44]);
	assert_ptr_equal(e.intercept_create, &amd.entry[intercept_create]);
	assert_ptr_equal(e.intercept_register, &amd.entry[intercept_create + 1]);
	assert_ptr_equal(e.set_priority, &amd.entry[intercept_create + 2]);
}

static void each_known_release_has_its_places(void **state)
{
	(void)state;
	make(1, 1, 1, 125, 48); /* 5.2.3 */
	assert_places(35);
	make(1, 1, 1, 125, 44); /* before it */
	assert_places(35);
	make(3, 2, 2, 125, 68); /* 6.0 */
	assert_places(37);
	make(3, 2, 2, 126, 84); /* 7: longer */
	assert_places(37);
}

static void assert_shut(const char *said)
{
	char doors[512];
	void *before[3];

	memcpy(before, (void *[]){ core.entry[7], core.entry[9], amd.entry[35] }, sizeof(before));
	assert_true(OnLoad(&root, 0, 0, NULL)); /* the program has its runtime */
	assert_ptr_equal(core.entry[7], before[0]);
	assert_ptr_equal(core.entry[9], before[1]);
	assert_ptr_equal(amd.entry[35], before[2]);
	gpreempt_level.doors(doors, sizeof(doors));
	assert_non_null(strstr(doors, "rocr: shut: "));
	assert_non_null(strstr(doors, said));
}

static void tables_that_nobody_knows_are_left_as_they_are(void **state)
{
	void **const needed[] = { &core.entry[7],  &core.entry[9],  &core.entry[14], &core.entry[37],
				  &core.entry[38], &core.entry[40], &core.entry[42], &core.entry[44],
				  &amd.entry[15],  &amd.entry[16],  &amd.entry[37],  &amd.entry[38],
				  &amd.entry[39] };

	(void)state;
	make(1, 1, 1, 125, 49); /* between 5.2 and 6: something was put in before, nobody said where */
	assert_shut("known are those of ROCm 5.2 and of 6 and later");
	make(4, 3, 3, 125, 90);
	assert_shut("versions 4, 3 and 3 with 125 and 90 entries");
	make(3, 2, 1, 125, 48);
	assert_shut("versions 3, 2 and 1");
	make(3, 2, 2, 125, 39); /* too short for its id */
	assert_shut("125 and 39 entries");
	make(3, 2, 2, 44, 68);
	assert_shut("44 and 68 entries");
	make(3, 2, 2, 125, 68);
	amd.version.minor_id = 0;
	assert_shut("125 and 0 entries");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		make(3, 2, 2, 125, 68);
		*needed[i] = NULL;
		assert_shut("is empty");
	}
	make(3, 2, 2, 125, 68);
	root.version.minor_id = 16;
	assert_shut("gave no table");
}

static void an_open_door_stands_before_queues_and_copies_and_nothing_else(void **state)
{
	char doors[512];

	(void)state;
	make(3, 2, 2, 125, 68);
	assert_true(OnLoad(&root, 0, 0, NULL));
	for (uint32_t i = 0; i < 125; i++)
		assert_int_equal(core.entry[i] != (void *)nothing, i == 7 || i == 9);
	for (uint32_t i = 0; i < 68; i++)
		assert_int_equal(amd.entry[i] != (void *)nothing, i == 15 || i == 16 || i == 37 || i == 39);
	gpreempt_level.doors(doors, sizeof(doors));
	assert_string_equal(doors, "rocr: open\n");
	OnUnload();
}

static void it_stays_shut_where_the_environment_says_so(void **state)
{
	(void)state;
	make(3, 2, 2, 125, 68);
	setenv("GPREEMPT_LEVEL", "off", 1);
	assert_shut("GPREEMPT_LEVEL is off");
	unsetenv("GPREEMPT_LEVEL");
}

/* Packets */

struct packet {
	uint16_t header;
	uint16_t fields[27];
	uint64_t signal;
};

struct barrier {
	uint16_t header, zeros[3];
	uint64_t waits_for[5], zero, signal;
};

#define LAUNCH 2
#define BARRIER_AND 3
#define BIT (1 << 8)
#define SYSTEM (2 << 11) /* a release fence */

static const struct gp_aql_signals signals = { .gate = 0x1000, .count = 0x2000 };

static void assert_barrier(const void *packet, uint32_t bit, uint64_t waits_for, uint64_t signal)
{
	const struct barrier *b = packet;

	assert_int_equal(b->header, BARRIER_AND | bit);
	assert_int_equal(b->waits_for[0], waits_for);
	for (int i = 1; i < 5; i++)
		assert_int_equal(b->waits_for[i], 0);
	assert_int_equal(b->signal, signal);
}

static void a_launch_without_a_signal_counts_itself(void **state)
{
	struct packet in = { .header = LAUNCH | BIT | SYSTEM, .fields = { 1, 2, 3 } }, out[3], same;

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT, &signals, out), 1);
	assert_int_equal(out[0].signal, signals.count);
	same = in;
	same.signal = signals.count;
	assert_memory_equal(&out[0], &same, sizeof(same));
	assert_int_equal(in.signal, 0); /* the program's packet is the program's */
}

static void a_launch_keeps_its_own_signal_and_is_counted_behind_it(void **state)
{
	struct packet in = { .header = LAUNCH, .signal = 0x3000 }, out[3];

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 3);
	assert_barrier(&out[0], 0, signals.gate, 0); /* as the launch: it waits for none before it */
	assert_memory_equal(&out[1], &in, sizeof(in));
	assert_barrier(&out[2], BIT, 0, signals.count);
}

static void a_gate_has_its_launchs_barrier_bit(void **state)
{
	struct packet in = { .header = LAUNCH | BIT | SYSTEM }, out[3];

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 2);
	assert_barrier(&out[0], BIT, signals.gate, 0);
}

static void what_is_no_launch_passes_in_its_place(void **state)
{
	struct packet in[] = { { .header = BARRIER_AND | BIT, .signal = 0x4000 },
			       { .header = LAUNCH },
			       { .header = 5, .signal = 0x5000 },
			       { .header = 0, .fields = { 0xfe } } },
		      out[12];

	(void)state;
	assert_int_equal(gp_aql_launches(in, 4), 1);
	assert_int_equal(gp_aql_rewrite(in, 4, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 5);
	assert_memory_equal(&out[0], &in[0], sizeof(in[0]));
	assert_barrier(&out[1], 0, signals.gate, 0);
	assert_int_equal(out[2].header, LAUNCH);
	assert_memory_equal(&out[3], &in[2], sizeof(in[2]));
	assert_memory_equal(&out[4], &in[3], sizeof(in[3]));
}

/* A runtime: what its calls do, in the places of ROCm 6 */

#define SIGNALS 64
#define QUEUES 64
#define OUT_OF_RESOURCES 0x1008

static struct {
	int64_t value;
	int is_there;
} hsa_signals[SIGNALS];
static struct {
	struct gp_hsa_queue queue;
	gp_hsa_handler handler;
	void *data;
	int is_there, is_intercepted;
} hsa_queues[QUEUES];
static int nsignals, signals_left, nqueues, intercept_fails, destroy_fails, plain_calls, intercept_calls;
static int64_t last_awaited;

static int make_signal(int64_t value, uint32_t n, const gp_hsa_agent *consumers, gp_hsa_signal *ret)
{
	(void)n, (void)consumers;
	if (!signals_left)
		return OUT_OF_RESOURCES;
	signals_left--;
	assert_true(++nsignals < SIGNALS);
	hsa_signals[nsignals].value = value;
	hsa_signals[nsignals].is_there = 1;
	ret->handle = (uint64_t)nsignals;
	return 0;
}

static int destroy_signal(gp_hsa_signal signal)
{
	assert_true(hsa_signals[signal.handle].is_there);
	hsa_signals[signal.handle].is_there = 0;
	return 0;
}

static int64_t load_signal(gp_hsa_signal signal)
{
	assert_true(hsa_signals[signal.handle].is_there);
	return __atomic_load_n(&hsa_signals[signal.handle].value, __ATOMIC_SEQ_CST);
}

static void store_signal(gp_hsa_signal signal, int64_t value)
{
	assert_true(hsa_signals[signal.handle].is_there);
	__atomic_store_n(&hsa_signals[signal.handle].value, value, __ATOMIC_SEQ_CST);
}

static int64_t wait_signal(gp_hsa_signal signal, uint32_t condition, int64_t value, uint64_t timeout,
			   uint32_t waiting)
{
	assert_true(condition == GP_HSA_LT && waiting == GP_HSA_BLOCKED);
	last_awaited = value;
	for (uint64_t ns = 0; ns < timeout && load_signal(signal) >= value; ns += 100000)
		usleep(100);
	return load_signal(signal);
}

static int make_queue(int is_intercepted, struct gp_hsa_queue **ret)
{
	assert_true(nqueues < QUEUES);
	hsa_queues[nqueues].is_there = 1;
	hsa_queues[nqueues].is_intercepted = is_intercepted;
	hsa_queues[nqueues].handler = NULL;
	*ret = &hsa_queues[nqueues++].queue;
	return 0;
}

static int make_plain(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
		      uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	(void)agent, (void)size, (void)type, (void)error, (void)data, (void)private_size, (void)group_size;
	plain_calls++;
	return make_queue(0, ret);
}

static int make_intercepted(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
			    uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	(void)agent, (void)type, (void)error, (void)data, (void)private_size, (void)group_size;
	intercept_calls++;
	if (intercept_fails)
		return OUT_OF_RESOURCES;
	make_queue(1, ret);
	(*ret)->size = size;
	return 0;
}

static int number_of(struct gp_hsa_queue *queue)
{
	for (int i = 0; i < nqueues; i++)
		if (queue == &hsa_queues[i].queue && hsa_queues[i].is_there)
			return i;
	fail();
	return 0;
}

static int set_handler(struct gp_hsa_queue *queue, gp_hsa_handler handler, void *data)
{
	int i = number_of(queue);

	if (!hsa_queues[i].is_intercepted)
		return OUT_OF_RESOURCES;
	hsa_queues[i].handler = handler;
	hsa_queues[i].data = data;
	return 0;
}

static int destroy_queue(struct gp_hsa_queue *queue)
{
	int i = number_of(queue);

	for (int j = 1; j <= nsignals; j++)
		assert_true(hsa_signals[j].value <= 0); /* no gate is closed */

	if (destroy_fails)
		return OUT_OF_RESOURCES;
	hsa_queues[i].is_there = 0;
	return 0;
}

static int set_priority(struct gp_hsa_queue *queue, uint32_t priority)
{
	(void)number_of(queue);
	return priority > GP_HSA_PRIORITY_HIGH ? OUT_OF_RESOURCES : 0;
}

static void open_door(void)
{
	make(3, 2, 2, 125, 68);
	core.entry[7] = (void *)make_plain;
	core.entry[9] = (void *)destroy_queue;
	core.entry[37] = (void *)make_signal;
	core.entry[38] = (void *)destroy_signal;
	core.entry[40] = (void *)load_signal;
	core.entry[42] = (void *)store_signal;
	core.entry[44] = (void *)wait_signal;
	amd.entry[37] = (void *)make_intercepted;
	amd.entry[38] = (void *)set_handler;
	amd.entry[39] = (void *)set_priority;
	nsignals = intercept_fails = destroy_fails = plain_calls = intercept_calls = 0;
	signals_left = SIGNALS;
	assert_true(OnLoad(&root, 0, 0, NULL));
}

/* What a program does */

static struct gp_hsa_queue *new_queue(void)
{
	gp_hsa_queue_create *create = (gp_hsa_queue_create *)core.entry[7];
	struct gp_hsa_queue *queue = NULL;

	assert_int_equal(create((gp_hsa_agent){ 5 }, 64, 0, NULL, NULL, 0, 0, &queue), 0);
	return queue;
}

static int prioritize(struct gp_hsa_queue *queue, uint32_t priority)
{
	return ((gp_hsa_set_priority *)amd.entry[39])(queue, priority);
}

static int destroy(struct gp_hsa_queue *queue)
{
	return ((gp_hsa_queue_destroy *)core.entry[9])(queue);
}

static struct packet written[64];
static uint64_t nwritten;

static void take_down(const void *packets, uint64_t n)
{
	memcpy(written, packets, n * sizeof(*written));
	nwritten = n;
}

static void ring(struct gp_hsa_queue *queue, const struct packet *packets, uint64_t n)
{
	int i = number_of(queue);

	nwritten = 0;
	assert_non_null(hsa_queues[i].handler);
	hsa_queues[i].handler(packets, n, 0, hsa_queues[i].data, take_down);
}

static uint64_t first_gate(void)
{
	struct barrier b;

	memcpy(&b, written, sizeof(b));
	return b.waits_for[0];
}

static uint32_t class_of(struct gp_hsa_queue *queue)
{
	struct gp_level_queue *q = gpreempt_level.find(queue, 0);
	struct gp_level_state s;

	assert_int_equal(gpreempt_level.state(q, &s), 0);
	gpreempt_level.put(q);
	return s.client_class;
}

static void assert_no_signal_is_left(void)
{
	for (int i = 1; i <= nsignals; i++)
		assert_false(hsa_signals[i].is_there);
}

static const struct packet plain_launch = { .header = LAUNCH | BIT };

static void a_queue_is_gated_and_counted_by_signals_of_its_own(void **state)
{
	struct gp_level_state s;
	struct gp_hsa_queue *queue, *other;
	struct gp_level_queue *q;
	uint64_t gate, count;

	(void)state;
	open_door();
	queue = new_queue();
	other = new_queue();
	assert_true(intercept_calls == 2 && !plain_calls);
	ring(queue, &plain_launch, 1); /* of no class */
	assert_int_equal(nwritten, 1);
	assert_memory_equal(written, &plain_launch, sizeof(plain_launch));
	assert_int_equal(prioritize(queue, GP_HSA_PRIORITY_LOW), 0);
	ring(queue, &plain_launch, 1);
	assert_int_equal(nwritten, 2);
	gate = first_gate();
	count = written[1].signal;
	assert_true(hsa_signals[gate].is_there && hsa_signals[count].is_there && gate != count);
	q = gpreempt_level.find(queue, 0);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	assert_int_equal(hsa_signals[gate].value, 1);
	assert_int_equal(gpreempt_level.sync(q, 1000000), -ETIMEDOUT);
	assert_int_equal(last_awaited, 0);          /* less than that: one has ended */
	store_signal((gp_hsa_signal){ count }, -1); /* as the packet processor does */
	assert_int_equal(gpreempt_level.sync(q, 1000000), 0);
	assert_int_equal(gpreempt_level.state(q, &s), 0);
	assert_true(s.begun == 1 && s.ended == 1);
	assert_int_equal(gpreempt_level.let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_int_equal(hsa_signals[gate].value, 0);
	gpreempt_level.put(q);
	assert_int_equal(destroy(queue) | destroy(other), 0);
	assert_no_signal_is_left();
	OnUnload();
}

static void a_held_queue_that_is_destroyed_is_opened_first(void **state)
{
	struct gp_hsa_queue *queue;
	struct gp_level_queue *q;
	uint64_t gate;

	(void)state;
	open_door();
	queue = new_queue();
	prioritize(queue, GP_HSA_PRIORITY_LOW);
	ring(queue, &plain_launch, 1);
	gate = first_gate();
	q = gpreempt_level.find(queue, 0);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	destroy_fails = 1; /* it stays, and what it launches passes */
	assert_int_equal(destroy(queue), OUT_OF_RESOURCES);
	assert_int_equal(hsa_signals[gate].value, 0);
	ring(queue, &plain_launch, 1);
	assert_int_equal(nwritten, 1);
	assert_true(hsa_signals[gate].is_there); /* a packet may wait for it */
	assert_null(gpreempt_level.find(queue, 0));
	gpreempt_level.put(q);
	OnUnload();
}

static void a_runtime_that_ends_opens_all_and_is_not_called_again(void **state)
{
	struct gp_hsa_queue *queue;
	struct gp_level_queue *q;
	uint64_t gate;

	(void)state;
	open_door();
	queue = new_queue();
	prioritize(queue, GP_HSA_PRIORITY_LOW);
	ring(queue, &plain_launch, 1);
	gate = first_gate();
	q = gpreempt_level.find(queue, 0);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	OnUnload();
	assert_int_equal(hsa_signals[gate].value, 0);
	memset(hsa_signals, 0, sizeof(hsa_signals)); /* whoever looks at one now is caught */
	ring(queue, &plain_launch, 1);
	assert_int_equal(nwritten, 1);
	assert_int_equal(gpreempt_level.let_go(q, GP_HOLDER_PROGRAM), -ENODEV);
	gpreempt_level.put(q);
	open_door(); /* and it can start again */
	queue = new_queue();
	prioritize(queue, GP_HSA_PRIORITY_LOW);
	ring(queue, &plain_launch, 1);
	assert_int_equal(nwritten, 2);
	assert_int_equal(destroy(queue), 0);
	OnUnload();
}

static void a_library_that_is_named_twice_is_loaded_once(void **state)
{
	void *create;

	(void)state;
	open_door();
	create = core.entry[7];
	assert_true(OnLoad(&root, 0, 0, NULL));
	assert_ptr_equal(core.entry[7], create);
	assert_int_equal(destroy(new_queue()), 0); /* else it would call itself */
	assert_int_equal(intercept_calls, 1);
	OnUnload();
}

static void a_queues_priority_is_its_class_while_it_has_one(void **state)
{
	struct gp_hsa_queue *queue;

	(void)state;
	open_door();
	setenv("GPREEMPT_CLASS", "offline", 1);
	queue = new_queue();
	unsetenv("GPREEMPT_CLASS");
	assert_int_equal(prioritize(queue, GP_HSA_PRIORITY_NORMAL), 0); /* as HIP does of all its queues */
	assert_int_equal(class_of(queue), GP_CLASS_OFFLINE);
	assert_int_equal(prioritize(queue, GP_HSA_PRIORITY_HIGH), 0);
	assert_int_equal(class_of(queue), GP_CLASS_ONLINE);
	assert_int_equal(prioritize(queue, 77), OUT_OF_RESOURCES);
	assert_int_equal(class_of(queue), GP_CLASS_ONLINE);
	assert_int_equal(prioritize(queue, GP_HSA_PRIORITY_NORMAL), 0);
	assert_int_equal(class_of(queue), GP_CLASS_OFFLINE);
	destroy(queue);
	OnUnload();
}

static struct gp_hsa_queue *one, *another;

/* That this thread launched to last; NULL: there is none. */
static const void *last_queue(void)
{
	struct gp_level_queue *found = gpreempt_level.find_last();
	const void *queue = found ? found->is.stream : NULL;

	if (found)
		gpreempt_level.put(found);
	return queue;
}

static void assert_last(const struct gp_hsa_queue *queue)
{
	assert_ptr_equal(last_queue(), queue);
}

static void *launch_elsewhere(void *ret_seen)
{
	const void **seen = ret_seen;

	seen[0] = last_queue();
	ring(another, &plain_launch, 1);
	seen[1] = last_queue();
	return NULL;
}

static void each_thread_finds_the_queue_that_it_launched_to_last(void **state)
{
	static const struct packet barrier = { .header = BARRIER_AND | BIT };
	const void *seen[2];
	pthread_t thread;

	(void)state;
	open_door();
	gp_engine.serials = 0; /* as in a program that has just begun */
	one = new_queue();
	another = new_queue();
	assert_last(NULL);
	ring(another, &plain_launch, 1);
	assert_last(another);
	ring(one, &plain_launch, 1); /* of no class */
	ring(another, &barrier, 1);  /* is no launch */
	assert_last(one);
	pthread_create(&thread, NULL, launch_elsewhere, (void *)seen);
	pthread_join(thread, NULL);
	assert_true(!seen[0] && seen[1] == another);
	assert_last(one);
	destroy(one);
	assert_last(NULL);
	one = new_queue(); /* in its place, perhaps */
	assert_last(NULL);
	destroy(one);
	destroy(another);
	OnUnload();
}

static void queues_of_another_device_are_not_held(void **state)
{
	gp_hsa_queue_create *create;
	struct gp_hsa_queue *low, *high, *far = NULL;
	uint64_t near_gate, far_gate;

	(void)state;
	open_door();
	create = (gp_hsa_queue_create *)core.entry[7];
	low = new_queue();
	high = new_queue();
	assert_int_equal(create((gp_hsa_agent){ 6 }, 64, 0, NULL, NULL, 0, 0, &far), 0);
	prioritize(low, GP_HSA_PRIORITY_LOW);
	prioritize(far, GP_HSA_PRIORITY_LOW);
	prioritize(high, GP_HSA_PRIORITY_HIGH);
	ring(low, &plain_launch, 1);
	near_gate = first_gate();
	ring(far, &plain_launch, 1);
	far_gate = first_gate();
	ring(high, &plain_launch, 1);
	assert_int_equal(nwritten, 1);
	assert_int_equal(load_signal((gp_hsa_signal){ near_gate }), 1);
	assert_int_equal(load_signal((gp_hsa_signal){ far_gate }), 0);
	destroy(high);
	destroy(low);
	destroy(far);
	OnUnload();
}

static void the_environment_may_leave_out_the_gate(void **state)
{
	struct gp_hsa_queue *queue;
	struct gp_level_queue *q;
	struct gp_level_state s;

	(void)state;
	setenv("GPREEMPT_LEVEL", "throttle", 1);
	open_door();
	unsetenv("GPREEMPT_LEVEL");
	queue = new_queue();
	q = gpreempt_level.find(queue, 0);
	assert_int_equal(gpreempt_level.state(q, &s), 0);
	assert_true(s.levels == 1u << GP_LEVEL_THROTTLE && s.level == GP_LEVEL_THROTTLE);
	gpreempt_level.put(q);
	destroy(queue);
	OnUnload();
}

/* How many launches of 100 us may be in flight then. */
static uint32_t depth_with(const char *wait)
{
	struct gp_hsa_queue *queue;
	struct gp_level_queue *q;
	struct gp_level_state s;

	if (wait)
		setenv("GPREEMPT_LEVEL_WAIT", wait, 1);
	open_door();
	unsetenv("GPREEMPT_LEVEL_WAIT");
	queue = new_queue();
	q = gpreempt_level.find(queue, 0);
	q->depth.length_ns = 100000;
	assert_int_equal(gpreempt_level.state(q, &s), 0);
	gpreempt_level.put(q);
	destroy(queue);
	OnUnload();
	return s.depth;
}

static void the_environment_says_how_long_launches_may_wait_and_nonsense_is_a_millisecond(void **state)
{
	static const char *const nonsense[] = { NULL, "", "soon", "4", "-4ms", "9us", "1001ms", "4 parsecs" };

	(void)state;
	assert_int_equal(depth_with("4ms"), 40);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		assert_int_equal(depth_with(nonsense[i]), 10);
	assert_int_equal(depth_with("300us"), 3);
	assert_int_equal(depth_with("10us"), 2); /* with one the device would stand still between two */
	assert_int_equal(depth_with("1s"), 64);
}

static void what_cannot_be_had_leaves_the_program_its_queue(void **state)
{
	struct gp_hsa_queue *queue;

	(void)state;
	open_door();
	intercept_fails = 1; /* it is a plain one, and takes no handler */
	queue = new_queue();
	assert_int_equal(plain_calls, 1);
	assert_null(gpreempt_level.find(queue, 0));
	assert_int_equal(destroy(queue), 0);
	intercept_fails = 0;
	for (signals_left = 0; signals_left < 2; signals_left++) { /* of two */
		int left = signals_left;

		queue = new_queue();
		assert_null(gpreempt_level.find(queue, 0));
		assert_int_equal(destroy(queue), 0);
		signals_left = left;
	}
	assert_true(intercept_calls == 3 &&
		    plain_calls == 3); /* an intercepted one without us is no plain one */
	assert_no_signal_is_left();
	OnUnload();
}

static void a_queue_that_another_tool_makes_is_looked_after_too(void **state)
{
	gp_hsa_queue_create *create;
	struct gp_hsa_queue *queue = NULL;

	(void)state;
	open_door();
	create = (gp_hsa_queue_create *)amd.entry[37];
	assert_int_equal(create((gp_hsa_agent){ 5 }, 64, 0, NULL, NULL, 0, 0, &queue), 0);
	assert_int_equal(prioritize(queue, GP_HSA_PRIORITY_LOW), 0);
	ring(queue, &plain_launch, 1);
	assert_int_equal(nwritten, 2);
	assert_int_equal(destroy(queue), 0);
	OnUnload();
}

static void many_packets_at_once_all_pass_in_order(void **state)
{
	struct packet in[16];
	struct gp_hsa_queue *queue;

	(void)state;
	open_door();
	queue = new_queue();
	prioritize(queue, GP_HSA_PRIORITY_LOW);
	for (int i = 0; i < 16; i++)
		in[i] = (struct packet){ .header = LAUNCH, .fields = { (uint16_t)i }, .signal = 9000 };
	for (uint64_t n = 1; n <= 16; n++) {
		ring(queue, in, n);
		assert_int_equal(nwritten, 3 * n);
		for (uint64_t i = 0; i < n; i++)
			assert_memory_equal(&written[3 * i + 1], &in[i], sizeof(*in));
	}
	destroy(queue);
	OnUnload();
}

/* ROCr 5.2's intercepted queue: a ring that the program sees, whose packets go through the handler into a
 * second one. What has no place there is kept, and a packet wakes it; but it goes on, and then asserts. */

#define RING 64

static struct {
	struct gp_hsa_queue *queue;
	struct packet program[RING], below[RING], kept[RING];
	uint64_t program_write, program_read;
	uint64_t write, read, retry, nkept;
} strict;
static pthread_mutex_t strict_lock = PTHREAD_MUTEX_INITIALIZER;

static int strict_submit(const struct packet *packets, uint64_t n)
{
	int fits;

	pthread_mutex_lock(&strict_lock);
	fits = RING - (strict.write - strict.read) > n;
	if (fits) {
		for (uint64_t i = 0; i < n; i++)
			strict.below[strict.write++ % RING] = packets[i];
	} else if (strict.retry <= strict.read) {
		strict.retry = strict.write;
		strict.below[strict.write++ % RING] = (struct packet){ .header = BARRIER_AND | BIT };
	}
	pthread_mutex_unlock(&strict_lock);
	return fits;
}

static void strict_writer(const void *packets, uint64_t n)
{
	if (strict_submit(packets, n))
		return;
	assert_int_equal(strict.nkept, 0); /* as it does */
	memcpy(strict.kept, packets, n * sizeof(struct packet));
	strict.nkept = n;
}

static void strict_ring(void)
{
	int number = number_of(strict.queue);
	uint64_t i, end = strict.program_write;

	if (strict.nkept && !strict_submit(strict.kept, strict.nkept))
		return;
	strict.nkept = 0;
	for (i = strict.program_read; i < end; i++)
		hsa_queues[number].handler(&strict.program[i % RING], 1, i, hsa_queues[number].data,
					   strict_writer);
	strict.program_read = i;
}

static uint64_t strict_write_index(const struct gp_hsa_queue *queue)
{
	assert_ptr_equal(queue, strict.queue);
	return strict.program_write;
}

/* The packet processor, which must find the program's launches in their order. */
static struct {
	uint64_t launches, wrong;
	int is_running;
} processor;

/* The places of 5.2, and one queue. */
static void open_strict_door(uint32_t priority)
{
	open_door();
	OnUnload();
	make(1, 1, 1, 125, 48);
	core.entry[7] = (void *)make_plain;
	core.entry[9] = (void *)destroy_queue;
	core.entry[14] = (void *)strict_write_index;
	core.entry[37] = (void *)make_signal;
	core.entry[38] = (void *)destroy_signal;
	core.entry[40] = (void *)load_signal;
	core.entry[42] = (void *)store_signal;
	core.entry[44] = (void *)wait_signal;
	amd.entry[35] = (void *)make_intercepted;
	amd.entry[36] = (void *)set_handler;
	amd.entry[37] = (void *)set_priority;
	assert_true(OnLoad(&root, 0, 0, NULL));
	memset(&strict, 0, sizeof(strict));
	memset(&processor, 0, sizeof(processor));
	strict.queue = new_queue();
	assert_int_equal(((gp_hsa_set_priority *)amd.entry[37])(strict.queue, priority), 0);
}

/* Launches that bear their number, in the program's ring; the doorbell is another thing. */
static void put(uint64_t n)
{
	for (; n; n--, strict.program_write++)
		strict.program[strict.program_write % RING] =
			(struct packet){ .header = LAUNCH, .fields = { (uint16_t)strict.program_write } };
}

static void process_one(void)
{
	const struct packet *p = &strict.below[strict.read++ % RING];

	if ((p->header & 0xff) == LAUNCH)
		processor.wrong += p->fields[0] != (uint16_t)processor.launches++;
	if (p->signal)
		__atomic_sub_fetch(&hsa_signals[p->signal].value, 1, __ATOMIC_SEQ_CST);
}

static void process_all(void)
{
	while (strict.read < strict.write)
		process_one();
}

static void *process_slowly(void *unused)
{
	while (__atomic_load_n(&processor.is_running, __ATOMIC_SEQ_CST)) {
		pthread_mutex_lock(&strict_lock);
		if (strict.read < strict.write)
			process_one();
		pthread_mutex_unlock(&strict_lock);
		usleep(10);
	}
	return unused;
}

static void start_processor(pthread_t *thread)
{
	processor.is_running = 1;
	pthread_create(thread, NULL, process_slowly, NULL);
}

static void stop_processor(pthread_t thread)
{
	__atomic_store_n(&processor.is_running, 0, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	process_all();
}

/* Until all have come; ROCr is woken by its packet, and rings itself. */
static void process_the_rest(void)
{
	pthread_t thread;

	while (processor.launches < strict.program_write) {
		start_processor(&thread);
		strict_ring();
		stop_processor(thread);
	}
	assert_true(processor.launches == strict.program_write && processor.wrong == 0);
	destroy(strict.queue);
	assert_no_signal_is_left();
	OnUnload();
}

static void fill_for_long(uint32_t priority)
{
	pthread_t thread;

	open_strict_door(priority);
	start_processor(&thread);
	for (int i = 0; i < 20; i++) { /* as many at once as the program finds places for */
		put(RING - (strict.program_write - strict.program_read));
		strict_ring();
	}
	stop_processor(thread);
	process_the_rest();
}

static void a_ring_that_must_not_overflow_does_not(void **state)
{
	(void)state;
	fill_for_long(GP_HSA_PRIORITY_NORMAL);
	fill_for_long(GP_HSA_PRIORITY_LOW); /* each is two packets */
}

static void what_a_ring_holds_goes_in_though_nothing_ends(void **state)
{
	(void)state;
	open_strict_door(GP_HSA_PRIORITY_NORMAL);
	put(RING);
	strict_ring(); /* it returns, after a second */
	assert_int_equal(strict.program_read, RING);
	assert_int_equal(strict.nkept, 1);
	process_the_rest();
}

static void who_rings_once_for_each_is_told_that_the_ring_is_full(uint32_t priority, int is_held)
{
	struct gp_level_queue *q;
	uint64_t n = 0;

	open_strict_door(priority);
	q = gpreempt_level.find(strict.queue, 0);
	if (is_held)
		assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_PROGRAM, 0), 0);
	while (n < 4 * RING && strict.program_write - strict.program_read < RING) {
		put(1);
		strict_ring();
		n++;
	}
	assert_true(n > RING && n < 4 * RING);
	assert_int_equal(gpreempt_level.let_go(q, GP_HOLDER_PROGRAM), 0);
	gpreempt_level.put(q);
	process_the_rest();
}

static void a_program_whose_ring_waits_for_itself_is_not_kept(void **state)
{
	(void)state;
	who_rings_once_for_each_is_told_that_the_ring_is_full(GP_HSA_PRIORITY_NORMAL, 0);
	who_rings_once_for_each_is_told_that_the_ring_is_full(GP_HSA_PRIORITY_LOW, 0);
	who_rings_once_for_each_is_told_that_the_ring_is_full(GP_HSA_PRIORITY_LOW, 1); /* by itself */
}

static void *unload_soon(void *unused)
{
	usleep(200000);
	OnUnload();
	return unused;
}

static void a_runtime_ends_below_a_thread_that_waits_for_room(void **state)
{
	struct gp_level_queue *q;
	pthread_t thread;

	(void)state;
	open_strict_door(GP_HSA_PRIORITY_LOW);
	q = gpreempt_level.find(strict.queue, 0);
	assert_int_equal(gpreempt_level.hold(q, GP_HOLDER_DAEMON, 0), 0); /* else it waits for a second */
	pthread_create(&thread, NULL, unload_soon, NULL);
	put(RING);
	strict_ring();
	pthread_join(thread, NULL);
	assert_true(strict.write < RING && !strict.nkept);
	memset(hsa_signals, 0, sizeof(hsa_signals)); /* whoever looks at one now is caught */
	put(RING);
	strict_ring();
	gpreempt_level.put(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_known_release_has_its_places),
		cmocka_unit_test(tables_that_nobody_knows_are_left_as_they_are),
		cmocka_unit_test(an_open_door_stands_before_queues_and_copies_and_nothing_else),
		cmocka_unit_test(it_stays_shut_where_the_environment_says_so),
		cmocka_unit_test(a_launch_without_a_signal_counts_itself),
		cmocka_unit_test(a_launch_keeps_its_own_signal_and_is_counted_behind_it),
		cmocka_unit_test(a_gate_has_its_launchs_barrier_bit),
		cmocka_unit_test(what_is_no_launch_passes_in_its_place),
		cmocka_unit_test(a_queue_is_gated_and_counted_by_signals_of_its_own),
		cmocka_unit_test(a_held_queue_that_is_destroyed_is_opened_first),
		cmocka_unit_test(a_runtime_that_ends_opens_all_and_is_not_called_again),
		cmocka_unit_test(a_library_that_is_named_twice_is_loaded_once),
		cmocka_unit_test(a_queues_priority_is_its_class_while_it_has_one),
		cmocka_unit_test(each_thread_finds_the_queue_that_it_launched_to_last),
		cmocka_unit_test(queues_of_another_device_are_not_held),
		cmocka_unit_test(the_environment_may_leave_out_the_gate),
		cmocka_unit_test(
			the_environment_says_how_long_launches_may_wait_and_nonsense_is_a_millisecond),
		cmocka_unit_test(what_cannot_be_had_leaves_the_program_its_queue),
		cmocka_unit_test(a_queue_that_another_tool_makes_is_looked_after_too),
		cmocka_unit_test(many_packets_at_once_all_pass_in_order),
		cmocka_unit_test(a_ring_that_must_not_overflow_does_not),
		cmocka_unit_test(what_a_ring_holds_goes_in_though_nothing_ends),
		cmocka_unit_test(a_program_whose_ring_waits_for_itself_is_not_kept),
		cmocka_unit_test(a_runtime_ends_below_a_thread_that_waits_for_room),
	};

	return cmocka_run_group_tests_name("rocr", tests, NULL, NULL);
}
