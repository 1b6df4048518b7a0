// SPDX-License-Identifier: MIT
/* CUDA's door, on a driver and a CUPTI of the tests' own: what is put into streams, and what is let run. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../integration/cuda_double.h"
#include "base/time.h"
#include "level/api.h"
#include "level/internal.h"

int InitializeInjection(void);
extern const struct gp_level_api gpreempt_level;

static char cupti_path[4096];

static void rest(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / GP_S), .tv_nsec = (long)(ns % GP_S) };

	nanosleep(&t, NULL);
}

#define EVENTUALLY(condition) \
	do { \
		uint64_t end_ns = gp_level_now() + 30 * GP_S; \
		while (!(condition) && gp_level_now() < end_ns) \
			rest(GP_MS); \
		assert_true(condition); \
	} while (0)

/* The class that the environment says while it is made. */
static gp_cu_stream make(const char *class, uint32_t flags, int priority)
{
	gp_cu_stream stream = NULL;

	if (class)
		setenv("GPREEMPT_CLASS", class, 1);
	cuStreamCreateWithPriority(&stream, flags, priority);
	unsetenv("GPREEMPT_CLASS");
	return stream;
}

static gp_cu_stream make_offline(void)
{
	return make("offline", GP_CU_NON_BLOCKING, 0);
}

static int launch(gp_cu_stream stream, uint64_t ns)
{
	uint64_t nowhere = 0;
	void *args[] = { &ns, &nowhere };

	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

static struct gp_level_queue *find(gp_cu_stream stream)
{
	struct gp_level_queue *q = gp_level_find(stream, 0);

	assert_non_null(q);
	return q;
}

static struct gp_level_state state_of(struct gp_level_queue *q)
{
	struct gp_level_state s;

	assert_int_equal(gp_level_state(q, &s), 0);
	return s;
}

static void end(gp_cu_stream stream, struct gp_level_queue *q)
{
	gp_level_put(q);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

/* The door, in children: it is tried once in a process. */

/* In a child in which this variable has this value when the door is opened. */
static void assert_holds_with(const char *name, const char *value, int (*holds)(uint32_t arg), uint32_t arg)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		gp_engine.is_foreign = 0;
		setenv(name, value, 1);
		setenv("GPREEMPT_CUPTI", cupti_path, 1);
		InitializeInjection();
		_exit(!holds(arg) || strcmp(getenv(name), value) != 0); /* the program's stands */
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static int has_levels(uint32_t levels)
{
	struct gp_level_queue *q = gp_level_find(make_offline(), 0);

	return q && state_of(q).levels == levels;
}

static void one_connection_that_all_streams_share_leaves_no_gates(void **state)
{
	const char *name = "CUDA_DEVICE_MAX_CONNECTIONS";
	uint32_t throttle = 1u << GP_LEVEL_THROTTLE, both = throttle | 1u << GP_LEVEL_GATE;

	(void)state;
	assert_holds_with(name, "1", has_levels, throttle);
	assert_holds_with(name, "2", has_levels, both);
	assert_holds_with(name, "none", has_levels, both); /* which is 8 to CUDA */
}

/* So many streams have launched when there are no gates any more. */
static int is_crowded_at(uint32_t n)
{
	uint32_t gated = 0;

	for (gp_cu_stream stream = make_offline(); gated < 40; stream = make_offline(), gated++)
		if (launch(stream, 0) != 0 || *cuda_double_text(stream) != 'W')
			break;
	return gated + 1 == n;
}

static void three_quarters_of_the_connections_may_be_in_gates(void **state)
{
	const char *name = "CUDA_DEVICE_MAX_CONNECTIONS";

	(void)state;
	assert_holds_with(name, "2", is_crowded_at, 2);
	assert_holds_with(name, "32", is_crowded_at, 25);
	assert_holds_with(name, "33", is_crowded_at,
			  7); /* as where it is not said: CUDA has no more than 32 */
	assert_holds_with(name, "16 or so", is_crowded_at, 7);
}

static int asks_for_connections(uint32_t asks)
{
	return (getenv("CUDA_DEVICE_MAX_CONNECTIONS") != NULL) == asks;
}

static void connections_are_asked_for_where_there_are_gates_and_not_of_a_pool_that_others_share(void **state)
{
	(void)state;
	assert_holds_with("GPREEMPT_LEVEL", "gate", asks_for_connections, 1);
	assert_holds_with("GPREEMPT_LEVEL", "throttle", asks_for_connections, 0);
	assert_holds_with("CUDA_MPS_PIPE_DIRECTORY", "/tmp/mps", asks_for_connections, 0);
}

static void assert_says(const char *fails, const char *cupti, const char *level, const char *said)
{
	char doors[512];
	int status;
	pid_t child = fork();

	if (child == 0) {
		cuda_double_fail(fails);
		setenv("GPREEMPT_CUPTI", cupti, 1);
		setenv("GPREEMPT_LEVEL", level, 1);
		if (InitializeInjection() != 1)
			_exit(2);
		gpreempt_level.doors(doors, sizeof(doors));
		if (!strstr(doors, said))
			fprintf(stderr, "# %s", doors);
		/* One that stays shut changes nothing of the program's. */
		_exit(!strstr(doors, said) ||
		      !strstr(doors, "cuda: open") != !getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void it_opens_with_cupti_and_stays_shut_otherwise_and_says_why(void **state)
{
	(void)state;
	assert_says("", cupti_path, "", "cuda: open\n");
	assert_says("cuptiSubscribe", cupti_path, "", "cuda: shut: a profiler or debugger has CUPTI");
	assert_says("cuptiEnableCallback", cupti_path, "", "cuda: shut: CUPTI does not open: error 1");
	assert_says("cuptiEnableCallback:7", cupti_path, "", "cuda: shut: CUPTI does not open: error 1");
	assert_says("", cupti_path, "off", "cuda: shut: GPREEMPT_LEVEL is off");
	setenv("GPREEMPT_CUPTI", cupti_path, 1); /* here too, for those that follow */
	setenv("GPREEMPT_LEVEL_WAIT", "4ms", 1);
	assert_int_equal(InitializeInjection(), 1);
	unsetenv("GPREEMPT_LEVEL_WAIT");
	assert_int_equal(gp_engine.wait_ns, 4 * GP_MS);
	gp_engine.wait_ns = GP_LEVEL_WAIT_NS;
}

/* Streams */

static int lookups;
static int goes_meanwhile; /* the context whose stream's GPU is asked for */

/* As the driver's, that does not know it. */
static int get_address(char *text, int size, int device)
{
	if (__atomic_exchange_n(&goes_meanwhile, 0, __ATOMIC_SEQ_CST))
		cuda_double_destroy(1);
	return cuDeviceGetPCIBusId(text, size, device);
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlsym(void *library, const char *name)
{
	lookups++;
	if (!strcmp(name, "cuDeviceGetPCIBusId")) /* the door takes its table so */
		return (void *)(uintptr_t)get_address;
	return __real_dlsym(library, name);
}

/* In a child: gpreemptd is looked for by a thread there. */
static void a_new_stream_does_not_need_the_linker_whose_lock_another_may_have(void **state)
{
	struct gp_level_queue *q;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		gp_engine.is_foreign = 0;
		setenv("CUDA_DOUBLE_ADDRESS", "0001:0a:02.0", 1);
		lookups = 0;
		q = find(make_offline());
		_exit(lookups != 0 || q->is.gpu_id != 0x00010a02); /* as RM names it */
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void a_stream_that_nobody_classed_is_left_alone(void **state)
{
	gp_cu_stream stream = make(NULL, GP_CU_NON_BLOCKING, 0);

	(void)state;
	assert_int_equal(launch(stream, 0), 0);
	assert_int_equal(launch(NULL, 0), 0);
	assert_string_equal(cuda_double_text(stream), "K");
	assert_string_equal(cuda_double_text(NULL), "K");
	cuStreamDestroy_v2(stream);
}

static void a_gate_stands_before_each_launch_and_a_count_behind_it(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(stream, 0), 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_string_equal(cuda_double_text(stream), "WKCWKCWKC");
	assert_int_equal(state_of(q).begun, 3);
	assert_int_equal(state_of(q).ended, 3);
	end(stream, q);
}

static void a_closed_gate_stops_a_deep_stream_at_its_next_kernel(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);
	uint64_t ran;

	(void)state;
	for (int i = 0; i < 100; i++)
		launch(stream, 5 * GP_MS);
	EVENTUALLY(cuda_double_kernels(stream) >= 2);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	ran = cuda_double_kernels(stream);
	rest(60 * GP_MS);
	assert_true(cuda_double_kernels(stream) <= ran + 1);
	assert_true(state_of(q).ended < 50);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	assert_int_equal(gp_level_sync(q, 30 * GP_S), 0);
	assert_int_equal(cuda_double_kernels(stream), 100);
	end(stream, q);
}

static void a_throttled_stream_has_no_gate_and_so_many_in_flight(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);
	uint64_t most = 0, flying;

	(void)state;
	assert_int_equal(gp_level_set(q, GP_LEVEL_THROTTLE), 0);
	assert_int_equal(gp_level_set_depth(q, 3), 0);
	for (int i = 0; i < 20; i++) {
		launch(stream, 2 * GP_MS);
		flying = (uint64_t)i + 1 - cuda_double_kernels(stream);
		most = flying > most ? flying : most;
	}
	assert_true(most <= 3);
	assert_int_equal(strncmp(cuda_double_text(stream), "KCKCKC", 6), 0);
	end(stream, q);
}

static void a_stream_that_captures_is_left_alone_and_a_graph_is_one_launch(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);
	void *graph;

	(void)state;
	cuStreamBeginCapture_v2(stream, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(launch(stream, 0), 0);
	cuda_double_use(1);
	setenv("GPREEMPT_CLASS", "offline", 1);
	assert_int_equal(launch(GP_CU_LEGACY, 0), 0); /* which cannot be asked now */
	unsetenv("GPREEMPT_CLASS");
	assert_int_equal(strcspn(cuda_double_text(GP_CU_LEGACY), "W"),
			 strlen(cuda_double_text(GP_CU_LEGACY)));
	assert_int_equal(cuda_double_mode(), 0); /* as the program has it */
	cuda_double_destroy(1);
	cuda_double_use(0);
	cuStreamEndCapture(stream, &graph);
	assert_string_equal(cuda_double_text(stream), "");
	assert_int_equal(state_of(q).begun, 0);
	assert_int_equal(cuGraphLaunch(graph, stream), 0);
	assert_string_equal(cuda_double_text(stream), "WKC");
	end(stream, q);
}

static void launches_of_every_kind_are_launches(void **state)
{
	static const uint32_t kinds[] = {
		GP_CUPTI_LAUNCH,
		GP_CUPTI_LAUNCH_COOPERATIVE,
		GP_CUPTI_LAUNCH_EX,
		GP_CUPTI_GRAPH_LAUNCH,
		GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ,
		GP_CUPTI_LAUNCH_EX_PTSZ,
		GP_CUPTI_GRAPH_LAUNCH_PTSZ,
	};
	gp_cu_stream stream;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		stream = make_offline();
		assert_int_equal(cuda_double_launch_as(kinds[i], stream), 0);
		assert_string_equal(cuda_double_text(stream), "WKC");
		end(stream, find(stream));
	}
}

static void *launch_own_of_every_kind(void *text)
{
	cuda_double_launch_as(GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ, NULL);
	cuda_double_launch_as(GP_CUPTI_LAUNCH_EX_PTSZ, NULL);
	cuda_double_launch_as(GP_CUPTI_GRAPH_LAUNCH_PTSZ, NULL);
	strcpy(text, cuda_double_text(GP_CU_PER_THREAD));
	return NULL;
}

static void the_stream_null_is_a_thread_s_own_in_calls_that_say_so(void **state)
{
	pthread_t thread;
	char text[64];

	(void)state;
	setenv("GPREEMPT_CLASS", "offline", 1);
	pthread_create(&thread, NULL, launch_own_of_every_kind, text);
	pthread_join(thread, NULL);
	unsetenv("GPREEMPT_CLASS");
	assert_string_equal(text, "WKCWKCWKC");
}

static void *launch_own(void *text)
{
	uint64_t zero = 0;
	void *args[] = { &zero, &zero };

	setenv("GPREEMPT_CLASS", "offline", 1);
	cuda_double_launch_ptsz(NULL, args);
	cuda_double_launch_ptsz(GP_CU_PER_THREAD, args);
	strcpy(text, cuda_double_text(GP_CU_PER_THREAD));
	return NULL;
}

static int count_queues(void)
{
	int n = 0;

	gp_engine_lock();
	gp_list_each(at, &gp_engine.queues)
		n++;
	gp_engine_unlock();
	return n;
}

static void a_thread_s_own_stream_goes_with_it(void **state)
{
	int before = count_queues();
	pthread_t thread;
	char text[64];

	(void)state;
	for (int i = 0; i < 20; i++) { /* each has the pthread_t of the one before, and a stream of its own */
		pthread_create(&thread, NULL, launch_own, text);
		pthread_join(thread, NULL);
		assert_string_equal(text, "WKCWKC");
		assert_int_equal(count_queues(), before);
	}
	unsetenv("GPREEMPT_CLASS");
}

static pthread_barrier_t both;

static void *launch_own_in_both_contexts(void *unused)
{
	uint64_t zero = 0;
	void *args[] = { &zero, &zero };

	for (int i = 0; i < 2; i++) {
		cuda_double_use(i);
		cuda_double_launch_ptsz(NULL, args);
	}
	pthread_barrier_wait(&both); /* they are there */
	pthread_barrier_wait(&both); /* and were counted */
	return unused;
}

static void each_thread_has_a_stream_of_its_own_in_each_context(void **state)
{
	int before = count_queues();
	pthread_t threads[2];

	(void)state;
	pthread_barrier_init(&both, NULL, 3);
	setenv("GPREEMPT_CLASS", "offline", 1);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, launch_own_in_both_contexts, NULL);
	pthread_barrier_wait(&both);
	unsetenv("GPREEMPT_CLASS");
	assert_int_equal(count_queues(), before + 4);
	pthread_barrier_wait(&both);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count_queues(), before);
	pthread_barrier_destroy(&both);
	cuda_double_destroy(1);
}

static void *launch_in_context_1(void *unused)
{
	cuda_double_use(1);
	pthread_barrier_wait(&both);
	launch(NULL, 0);
	return unused;
}

static void a_stream_that_several_threads_launch_in_at_first_is_one(void **state)
{
	int before = count_queues();
	pthread_t threads[4];

	(void)state;
	pthread_barrier_init(&both, NULL, 4);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, launch_in_context_1, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(count_queues(), before + 1);
		cuda_double_destroy(1);
		assert_int_equal(count_queues(), before);
	}
	pthread_barrier_destroy(&both);
}

static void default_streams_are_streams_of_their_context_or_thread(void **state)
{
	char text[2][64];
	pthread_t threads[2];
	size_t before;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, launch_own, text[i]);
		pthread_join(threads[i], NULL);
		assert_string_equal(text[i], "WKCWKC");
	}
	cuda_double_use(1); /* where nobody has launched yet */
	before = strlen(cuda_double_text(GP_CU_LEGACY));
	setenv("GPREEMPT_CLASS", "offline", 1);
	launch(NULL, 0);
	launch(GP_CU_LEGACY, 0);
	unsetenv("GPREEMPT_CLASS");
	assert_string_equal(cuda_double_text(GP_CU_LEGACY) + before, "WKCWKC");
	gp_level_put(find(GP_CU_LEGACY));
	assert_null(gp_level_find(GP_CU_PER_THREAD, 0)); /* which of them? */
	cuda_double_destroy(1);
	launch(NULL, 0); /* the same handle, another context: nobody classed its streams */
	assert_string_equal(cuda_double_text(GP_CU_LEGACY) + before, "WKCWKCK");
	cuda_double_destroy(1);
	cuda_double_use(-1);
	cuda_double_use(0);
}

static void a_stream_without_a_context_is_left_alone(void **state)
{
	gp_cu_stream stream = make_offline();

	(void)state;
	cuda_double_use(-1);
	assert_int_equal(launch(stream, 0), 0);
	cuda_double_use(0);
	assert_string_equal(cuda_double_text(stream), "K");
	cuStreamDestroy_v2(stream);
}

static void what_waits_at_a_gate_goes_on_when_its_stream_is_destroyed(void **state)
{
	gp_cu_stream stream = make_offline(), next;
	struct gp_level_queue *q = find(stream), *other;

	(void)state;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	for (int i = 0; i < 10; i++)
		launch(stream, 10 * GP_MS);
	cuStreamDestroy_v2(stream);
	next = make_offline(); /* not where the other will still count */
	other = find(next);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), -ENODEV);
	gp_level_put(q);
	for (int i = 0; i < 3; i++)
		launch(next, 20 * GP_MS);
	rest(30 * GP_MS);
	assert_true(state_of(other).ended <= cuda_double_kernels(next));
	EVENTUALLY(cuda_double_kernels(stream) == 10);
	assert_int_equal(gp_level_sync(other, 30 * GP_S), 0);
	assert_int_equal(cuda_double_kernels(next), 3);
	end(next, other);
}

static void a_context_that_goes_takes_its_streams_with_it(void **state)
{
	struct gp_level_queue *q;
	gp_cu_stream stream, other = make_offline();

	(void)state;
	for (int i = 0; i < 3; i++) { /* its memory is the next one's */
		cuda_double_use(1);
		stream = make_offline();
		q = find(stream);
		assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
		launch(stream, 0);
		cuda_double_destroy(1);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), -ENODEV);
		assert_null(gp_level_find(stream, 0));
		gp_level_put(q);
		cuStreamDestroy_v2(stream);
		cuda_double_use(0);
	}
	end(other, find(other)); /* of another context: nothing happened to it */
}

/* The end of a context may wait for what it has; the next one with its handle may be there by then. */
static void what_a_context_had_goes_on_when_the_next_one_has_come(void **state)
{
	struct gp_level_queue *q, *other;
	gp_cu_stream stream, next;

	(void)state;
	cuda_double_use(1);
	stream = make_offline();
	q = find(stream);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	for (int i = 0; i < 5; i++)
		launch(stream, 10 * GP_MS);
	cuda_double_destroy(1);
	next = make_offline();
	other = find(next);
	assert_int_equal(gp_level_hold(other, GP_HOLDER_PROGRAM, 0), 0);
	launch(next, 0);
	EVENTUALLY(cuda_double_kernels(stream) == 5);
	assert_int_equal(cuda_double_kernels(next), 0);
	assert_int_equal(state_of(other).ended, 0);
	gp_level_put(q);
	gp_level_put(other);
	cuda_double_destroy(1);
	cuStreamDestroy_v2(stream);
	cuStreamDestroy_v2(next);
	cuda_double_use(0);
}

static void only_a_priority_that_nothing_blocks_makes_a_stream_online(void **state)
{
	gp_cu_stream low = make_offline(), high = make(NULL, GP_CU_NON_BLOCKING, -5),
		     blocks = make(NULL, 0, -5), usual = make(NULL, GP_CU_NON_BLOCKING, 0);
	struct gp_level_queue *q = find(low);

	(void)state;
	launch(blocks, GP_MS);
	launch(usual, GP_MS);
	assert_string_equal(cuda_double_text(blocks), "K");
	assert_string_equal(cuda_double_text(usual), "K");
	assert_int_equal(state_of(q).held, 0);
	launch(high, 50 * GP_MS);
	assert_string_equal(cuda_double_text(high), "KC");
	assert_int_equal(state_of(q).held, 1u << GP_HOLDER_ENGINE);
	for (int i = 0; i < 3; i++)
		launch(low, 0);
	rest(20 * GP_MS);
	assert_int_equal(cuda_double_kernels(low), 0);
	assert_int_equal(cuStreamSynchronize(low), 0);
	assert_int_equal(cuda_double_kernels(high), 1);
	cuStreamDestroy_v2(high);
	cuStreamDestroy_v2(usual);
	cuStreamDestroy_v2(blocks);
	end(low, q);
}

static void online_work_holds_nobody_on_another_gpu(void **state)
{
	gp_cu_stream low, high = make(NULL, GP_CU_NON_BLOCKING, -5);
	struct gp_level_queue *q;

	(void)state;
	cuda_double_use(1);
	cuda_double_move(1, 1);
	low = make_offline();
	q = find(low);
	cuda_double_use(0);
	launch(high, 20 * GP_MS);
	assert_int_equal(state_of(q).held, 0);
	assert_string_equal(cuda_double_text(high), "K"); /* nobody asks when it has ended */
	cuStreamSynchronize(high);
	cuStreamDestroy_v2(high);
	cuda_double_use(1);
	end(low, q);
	cuda_double_move(1, 0);
	cuda_double_destroy(1);
	cuda_double_use(0);
}

/* Without an end to the hold it would get the low stream's slices alone: a minute. */
static void an_online_launch_that_waits_in_the_driver_for_what_is_held_gets_it(void **state)
{
	gp_cu_stream low = make_offline(), high = make(NULL, GP_CU_NON_BLOCKING, -5);
	struct gp_level_queue *q = find(low);
	uint64_t start;

	(void)state;
	for (int i = 0; i < 120; i++)
		launch(low, 10 * GP_MS);
	start = gp_level_now();
	cuda_double_load();
	launch(high, 0);
	assert_int_equal(cuda_double_kernels(low), 120);
	assert_true(gp_level_now() - start < 20 * GP_S);
	cuStreamSynchronize(high);
	cuStreamDestroy_v2(high);
	end(low, q);
}

/* Faults */

static void assert_left_alone_after(const char *fails)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);
	const char *before;

	assert_int_equal(launch(stream, 0), 0);
	cuda_double_fail(fails);
	assert_int_equal(launch(stream, 0), 0);
	cuda_double_fail("");
	assert_int_equal(state_of(q).ended, state_of(q).begun);
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), -ENOTSUP);
	before = strdup(cuda_double_text(stream));
	assert_int_equal(launch(stream, 0), 0);
	assert_int_equal(strlen(cuda_double_text(stream)), strlen(before) + 1);
	assert_int_equal(gp_level_set(q, GP_LEVEL_GATE), 0); /* the program wants it again */
	assert_int_equal(launch(stream, 0), 0);
	assert_int_equal(strlen(cuda_double_text(stream)), strlen(before) + 2);
	free((void *)(uintptr_t)before);
	end(stream, q);
}

static void a_stream_whose_waits_or_writes_fail_is_left_alone(void **state)
{
	(void)state;
	assert_left_alone_after("cuStreamWaitValue32_v2");
	assert_left_alone_after("cuStreamWriteValue32_v2");
}

static void a_launch_that_is_refused_counts_as_one_that_ended(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);

	(void)state;
	cuda_double_fail("cuLaunchKernel");
	assert_int_equal(launch(stream, 0), CUDA_DOUBLE_REFUSED); /* the program is told */
	cuda_double_fail("");
	assert_int_equal(gp_level_sync(q, 30 * GP_S), 0);
	assert_int_equal(state_of(q).ended, 1);
	end(stream, q);
}

static void a_stream_whose_gpu_is_not_told_is_left_alone(void **state)
{
	gp_cu_stream stream;

	(void)state;
	cuda_double_fail("cuCtxGetDevice");
	stream = make_offline();
	cuda_double_fail("");
	assert_int_equal(launch(stream, 0), 0);
	assert_string_equal(cuda_double_text(stream), "K");
	assert_null(gp_level_find(stream, 0));
	cuStreamDestroy_v2(stream);
}

static void a_context_that_cannot_share_memory_is_left_alone(void **state)
{
	gp_cu_stream stream;

	(void)state;
	cuda_double_use(1);
	cuda_double_fail("cuMemHostRegister_v2");
	stream = make_offline();
	cuda_double_fail("");
	assert_int_equal(launch(stream, 0), 0);
	assert_string_equal(cuda_double_text(stream), "K");
	assert_null(gp_level_find(stream, 0));
	cuStreamDestroy_v2(stream);
	cuda_double_destroy(1);
	cuda_double_use(0);
}

static void more_streams_than_there_are_places_are_left_alone_and_places_come_back(void **state)
{
	static gp_cu_stream all[300];
	struct gp_level_queue *q;
	uint32_t found[2] = { 0 };
	const char *text;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 300; i++) {
			all[i] = make_offline();
			assert_int_equal(launch(all[i], 0), 0);
			assert_int_equal(cuStreamSynchronize(all[i]), 0);
			q = gp_level_find(all[i], 0);
			text = cuda_double_text(all[i]);
			assert_string_equal(text + (*text == 'W'), q ? "KC" : "K"); /* so many have no gate */
			found[round] += q != NULL;
			if (q)
				gp_level_put(q);
		}
		for (int i = 0; i < 300; i++)
			cuStreamDestroy_v2(all[i]);
	}
	assert_true(found[0] > 200 && found[0] < 300);
	assert_int_equal(found[1], found[0]);
}

/* Many */

struct many {
	gp_cu_stream stream;
	uint64_t n, done;
};

static void *launch_many(void *arg)
{
	struct many *m = arg;

	for (uint64_t i = 0; i < m->n; i++) {
		launch(m->stream, 0);
		__atomic_add_fetch(&m->done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void forty_streams_go_on_while_one_is_gated_and_its_thread_launches_without_end(void **state)
{
	struct many low = { .stream = make_offline(), .n = 2000 };
	struct gp_level_queue *q = find(low.stream);
	gp_cu_stream others[39];
	pthread_t thread;

	(void)state;
	assert_int_equal(gp_level_hold(q, GP_HOLDER_PROGRAM, 0), 0);
	pthread_create(&thread, NULL, launch_many, &low);
	EVENTUALLY(__atomic_load_n(&low.done, __ATOMIC_SEQ_CST) >= 128);
	rest(50 * GP_MS); /* time to fill it, and to stand there with the driver's lock */
	for (int i = 0; i < 39; i++)
		others[i] = make(NULL, GP_CU_NON_BLOCKING, 0);
	for (int i = 0; i < 39; i++) {
		launch(others[i], 0);
		assert_int_equal(cuStreamSynchronize(others[i]), 0);
		cuStreamDestroy_v2(others[i]);
	}
	assert_int_equal(cuda_double_kernels(low.stream), 0);
	assert_int_equal(gp_level_let_go(q, GP_HOLDER_PROGRAM), 0);
	pthread_join(thread, NULL);
	assert_int_equal(gp_level_sync(q, 30 * GP_S), 0);
	assert_int_equal(cuda_double_kernels(low.stream), 2000);
	end(low.stream, q);
}

/* What of the hardware's queues says CUDA_DEVICE_MAX_CONNECTIONS, 32 as the door sets it: three quarters. */
#define MOST_GATED 24

/* Some are waited for at the gate, some launch and have no place there: whoever was held stays so. */
static void more_streams_in_use_than_the_hardware_has_queues_for_have_no_gates(void **state)
{
	gp_cu_stream all[MOST_GATED + 1], spare;
	struct gp_level_queue *first, *last;

	(void)state;
	assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
	cuda_double_use(1);
	spare = make_offline(); /* never used: it does not count */
	for (int i = 0; i <= MOST_GATED; i++)
		all[i] = make_offline();
	first = find(all[0]);
	assert_int_equal(gp_level_hold(first, GP_HOLDER_PROGRAM, 0), 0);
	for (int i = 0; i < MOST_GATED; i++)
		assert_int_equal(launch(all[i], 0), 0);
	assert_int_equal(cuStreamSynchronize(all[1]), 0);
	assert_int_equal(cuda_double_kernels(all[0]), 0);
	assert_int_equal(launch(all[MOST_GATED], 0), 0);
	assert_string_equal(cuda_double_text(all[MOST_GATED]), "KC");
	cuStreamDestroy_v2(spare);
	last = find(spare = make_offline()); /* who comes now has none either */
	assert_int_equal(state_of(last).levels, 1u << GP_LEVEL_THROTTLE);
	gp_level_put(last);
	cuStreamDestroy_v2(spare);
	last = find(all[MOST_GATED]);
	assert_int_equal(state_of(last).levels, 1u << GP_LEVEL_THROTTLE);
	assert_int_equal(gp_level_set(last, GP_LEVEL_GATE), 0); /* when it can */
	assert_int_equal(state_of(last).level, GP_LEVEL_THROTTLE);
	assert_int_equal(state_of(first).level, GP_LEVEL_THROTTLE);
	assert_int_equal(cuStreamSynchronize(all[0]), 0); /* what waited in it runs */
	assert_true(state_of(first).held);                /* and what comes waits before it */
	gp_level_put(last);
	cuStreamDestroy_v2(all[MOST_GATED]);
	assert_int_equal(state_of(first).level, GP_LEVEL_GATE);
	assert_int_equal(launch(all[0], 0), 0);
	assert_string_equal(cuda_double_text(all[0]), "WKCWKC");
	assert_int_equal(cuda_double_kernels(all[0]), 1);
	assert_int_equal(gp_level_let_go(first, GP_HOLDER_PROGRAM), 0);
	end(all[0], first);
	for (int i = 1; i < MOST_GATED; i++)
		cuStreamDestroy_v2(all[i]);
	cuda_double_destroy(1);
	cuda_double_use(0);
}

/* Another thread resets the device while this one makes a stream there. */
static void a_stream_of_a_context_that_went_meanwhile_is_not_missed_in_the_next(void **state)
{
	gp_cu_stream stale, next;
	struct gp_level_queue *q;

	(void)state;
	cuda_double_use(1);
	goes_meanwhile = 1;
	stale = make_offline();
	assert_int_equal(goes_meanwhile, 0);
	assert_int_equal(launch(stale, 0), 0);
	next = make_offline(); /* its context has what the other had */
	cuStreamSynchronize(stale);
	cuStreamDestroy_v2(stale);
	q = find(next);
	assert_int_equal(state_of(q).level, GP_LEVEL_GATE);
	assert_int_equal(launch(next, 0), 0);
	assert_string_equal(cuda_double_text(next), "WKC");
	end(next, q);
	cuda_double_destroy(1);
	cuda_double_use(0);
}

static void *change_gates(void *arg)
{
	struct gp_level_queue *q = arg;

	for (int i = 0; i < 10000; i++) {
		gp_level_hold(q, GP_HOLDER_PROGRAM, 0);
		gp_level_let_go(q, GP_HOLDER_PROGRAM);
	}
	return NULL;
}

static void every_kernel_runs_once_whatever_is_held(void **state)
{
	struct many low = { .stream = make_offline(), .n = 3000 }, same = low;
	struct gp_level_queue *q = find(low.stream);
	pthread_t threads[3];

	(void)state;
	pthread_create(&threads[0], NULL, launch_many, &low);
	pthread_create(&threads[1], NULL, launch_many, &same); /* of one stream too */
	pthread_create(&threads[2], NULL, change_gates, q);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(gp_level_sync(q, 30 * GP_S), 0);
	assert_int_equal(cuda_double_kernels(low.stream), 6000);
	assert_int_equal(state_of(q).ended, 6000);
	end(low.stream, q);
}

static void *come_and_go(void *unused)
{
	(void)unused;
	for (int i = 0; i < 300; i++) {
		gp_cu_stream stream = NULL;

		cuStreamCreate(&stream, GP_CU_NON_BLOCKING);
		launch(stream, 0);
		cuStreamSynchronize(stream);
		cuStreamDestroy_v2(stream);
	}
	return NULL;
}

static void streams_may_come_and_go_in_several_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int round = 0; round < 2;
	     round++) { /* the driver is asked of those without a class: its lock is needed */
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, come_and_go, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		setenv("GPREEMPT_CLASS", "offline", 1);
	}
	unsetenv("GPREEMPT_CLASS");
}

static void a_child_after_fork_passes_everything_on(void **state)
{
	gp_cu_stream stream = make_offline();
	struct gp_level_queue *q = find(stream);
	pid_t child;
	int status;

	(void)state;
	gp_level_hold(q, GP_HOLDER_PROGRAM, 0);
	launch(stream, 0);
	child = fork();
	if (child == 0) {
		launch(stream, 0);
		_exit(strcmp(cuda_double_text(stream), "WKCK") ? 1 : 0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	gp_level_let_go(q, GP_HOLDER_PROGRAM);
	end(stream, q);
}

static void a_context_that_died_keeps_nobody(void **state)
{
	gp_cu_stream stream;
	struct gp_level_queue *q;

	(void)state;
	cuda_double_use(1);
	stream = make_offline();
	q = find(stream);
	gp_level_hold(q, GP_HOLDER_PROGRAM, 0);
	launch(stream, 0);
	cuda_double_kill(1);
	assert_int_equal(launch(stream, 0), CUDA_DOUBLE_DEAD); /* what CUDA says, and it says so at once */
	assert_int_equal(gp_level_sync(q, GP_MS), 0);
	assert_int_equal(launch(stream, 0), CUDA_DOUBLE_DEAD);
	gp_level_put(q);
	cuda_double_destroy(1);
	cuda_double_use(0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_connection_that_all_streams_share_leaves_no_gates),
		cmocka_unit_test(three_quarters_of_the_connections_may_be_in_gates),
		cmocka_unit_test(
			connections_are_asked_for_where_there_are_gates_and_not_of_a_pool_that_others_share),
		cmocka_unit_test(it_opens_with_cupti_and_stays_shut_otherwise_and_says_why),
		cmocka_unit_test(a_new_stream_does_not_need_the_linker_whose_lock_another_may_have),
		cmocka_unit_test(a_stream_that_nobody_classed_is_left_alone),
		cmocka_unit_test(a_gate_stands_before_each_launch_and_a_count_behind_it),
		cmocka_unit_test(a_closed_gate_stops_a_deep_stream_at_its_next_kernel),
		cmocka_unit_test(a_throttled_stream_has_no_gate_and_so_many_in_flight),
		cmocka_unit_test(a_stream_that_captures_is_left_alone_and_a_graph_is_one_launch),
		cmocka_unit_test(launches_of_every_kind_are_launches),
		cmocka_unit_test(the_stream_null_is_a_thread_s_own_in_calls_that_say_so),
		cmocka_unit_test(a_thread_s_own_stream_goes_with_it),
		cmocka_unit_test(each_thread_has_a_stream_of_its_own_in_each_context),
		cmocka_unit_test(a_stream_that_several_threads_launch_in_at_first_is_one),
		cmocka_unit_test(default_streams_are_streams_of_their_context_or_thread),
		cmocka_unit_test(a_stream_without_a_context_is_left_alone),
		cmocka_unit_test(what_waits_at_a_gate_goes_on_when_its_stream_is_destroyed),
		cmocka_unit_test(a_context_that_goes_takes_its_streams_with_it),
		cmocka_unit_test(what_a_context_had_goes_on_when_the_next_one_has_come),
		cmocka_unit_test(only_a_priority_that_nothing_blocks_makes_a_stream_online),
		cmocka_unit_test(online_work_holds_nobody_on_another_gpu),
		cmocka_unit_test(an_online_launch_that_waits_in_the_driver_for_what_is_held_gets_it),
		cmocka_unit_test(a_stream_whose_waits_or_writes_fail_is_left_alone),
		cmocka_unit_test(a_launch_that_is_refused_counts_as_one_that_ended),
		cmocka_unit_test(a_stream_whose_gpu_is_not_told_is_left_alone),
		cmocka_unit_test(a_context_that_cannot_share_memory_is_left_alone),
		cmocka_unit_test(more_streams_than_there_are_places_are_left_alone_and_places_come_back),
		cmocka_unit_test(forty_streams_go_on_while_one_is_gated_and_its_thread_launches_without_end),
		cmocka_unit_test(more_streams_in_use_than_the_hardware_has_queues_for_have_no_gates),
		cmocka_unit_test(a_stream_of_a_context_that_went_meanwhile_is_not_missed_in_the_next),
		cmocka_unit_test(every_kernel_runs_once_whatever_is_held),
		cmocka_unit_test(streams_may_come_and_go_in_several_threads),
		cmocka_unit_test(a_child_after_fork_passes_everything_on),
		cmocka_unit_test(a_context_that_died_keeps_nobody),
	};

	(void)argc;
	snprintf(cupti_path, sizeof(cupti_path), "%s", argv[0]);
	snprintf(strrchr(cupti_path, '/'), 64, "/libcupti.so.13");
	unsetenv("GPREEMPT_CLASS");
	unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
	return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
