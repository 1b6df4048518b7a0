// SPDX-License-Identifier: MIT
/*
 * CUDA's door: CUDA_INJECTION64_PATH.  The driver loads us in cuInit(), and CUPTI calls us before and after
 * each launch, however the program got at it.  Before one comes the gate, a wait of the stream itself for a
 * word of ours; behind it a write of the stream into another, which counts.  Both lie in memory of this
 * process: whoever asks whether something has ended calls nobody.  What cannot be had is not had: the stream
 * is left alone then.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/old_glibc.h"
#include "level/cuda_calls.h"
#include "level/doors.h"
#include "level/internal.h"

#define EXPORT __attribute__((visibility("default")))
#define SLOTS 256u  /* streams of a context that are looked after */
#define BUCKETS 64u /* of streams */
#define DEEP 128u   /* at a gate: a channel has place for 1024, and a launch of ours takes three */
#define FIRST_COUNT (UINT32_MAX - 63) /* the end of 32 bits is passed early, in every test too */
#define CONNECTIONS "CUDA_DEVICE_MAX_CONNECTIONS"
#define USUAL_CONNECTIONS 8u
#define MOST_CONNECTIONS 32u
#define FIRST_NAP_NS (20 * GP_US)
#define LAST_NAP_NS (500 * GP_US)

int InitializeInjection(void) EXPORT;

/* What the device reads and writes. A line of the cache for each: one is written here, the other there. */
struct cuda_words {
	uint32_t gate, others[15]; /* 1: open */
	uint32_t count, more[15];  /* the number of the last launch that has ended */
};

struct cuda_context {
	struct gp_list link;
	gp_cu_context handle;     /* NULL: it went, and the memory waits for the next one */
	struct cuda_words *words; /* shared, so that a fork() leaves it where the device knows it */
	uint64_t address;         /* the device's of them; 0: it cannot have any */
	uint32_t last[SLOTS];     /* what count comes to, in the end */
	uint8_t is_taken[SLOTS];
	uint32_t in_use;     /* streams that have launched */
	uint32_t is_crowded; /* more than most_gated */
};

struct cuda_queue {
	struct gp_list link;
	struct cuda_context *context;
	gp_cu_stream stream;
	uintptr_t thread;             /* whose own stream it is */
	struct gp_level_queue *level; /* NULL: it is left alone */
	struct cuda_words *words;
	uint64_t address; /* the device's of words */
	uint32_t slot, base, is_lost;
	uint64_t begun;   /* launches that count */
	uint32_t is_used; /* or has launched anything */

	pthread_mutex_t order; /* ends are numbered as they are put into the stream */
	uint64_t told;         /* of those launches, whose end will be written */
};

static struct {
	gp_cu_value *wait_value, *write_value;
	gp_cu_is_capturing *is_capturing;
	gp_cu_exchange_mode *exchange_mode;
	gp_cu_get_priority *get_priority;
	gp_cu_get_flags *get_flags;
	gp_cu_get_device *get_device;
	gp_cu_bus_id *bus_id;
	gp_cu_register *host_register;
	gp_cu_address *address;
} cu;

static struct {
	gp_cupti_subscribe *subscribe;
	gp_cupti_unsubscribe *unsubscribe;
	gp_cupti_enable *enable;
} cupti;

/*
 * CUPTI may tell that a stream goes while the driver has a lock of its own: under this one no call of the
 * driver is made.  Those that a new stream needs are made under the other, which that path does not take.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct gp_list contexts = { &contexts, &contexts };
static struct gp_list streams[BUCKETS]; /* queues; zero: nobody was there yet */

/*
 * A stream that waits at its gate keeps all others of its queue of the hardware's.  CUDA seems to give each
 * stream that begins to work one that is free, of as many as CUDA_DEVICE_MAX_CONNECTIONS says: on an H200 24
 * streams that work kept nobody with 32 of them, and 48 did (results/h200/levels.json).  In a context where
 * more streams than three quarters of them are in use there are no gates.
 */
static uint32_t most_gated;

static pthread_key_t thread_key;
static uint32_t has_thread_key;

/* The table for the engine */

static void cuda_gate(void *door, int is_closed)
{
	struct cuda_queue *q = door;

	__atomic_store_n(&q->words->gate, !is_closed, __ATOMIC_SEQ_CST);
}

/* Numbers on the device have 32 bits, and go on where the last stream in this slot ended. */
static uint64_t cuda_ended(void *door)
{
	struct cuda_queue *q = door;
	uint64_t told = __atomic_load_n(&q->told, __ATOMIC_SEQ_CST);
	int32_t behind =
		(int32_t)((uint32_t)told + q->base - __atomic_load_n(&q->words->count, __ATOMIC_SEQ_CST));

	if (__atomic_load_n(&q->is_lost, __ATOMIC_SEQ_CST))
		return __atomic_load_n(&q->begun, __ATOMIC_SEQ_CST);
	if (behind <= 0) /* or another thread was faster than this look */
		return told;
	return (uint64_t)behind < told ? told - (uint64_t)behind : 0;
}

static uint64_t cuda_taken(void *door)
{
	struct cuda_queue *q = door;

	return __atomic_load_n(&q->is_lost, __ATOMIC_SEQ_CST) ? UINT64_MAX
							      : __atomic_load_n(&q->told, __ATOMIC_SEQ_CST);
}

/* CUDA has no wait with an end: a call into the driver may be kept by a lock for as long as it likes. */
static void cuda_wait(void *door, uint64_t ended, uint64_t timeout_ns)
{
	uint64_t end = gp_time_add(gp_level_now(), timeout_ns), nap = FIRST_NAP_NS;
	struct timespec t = { 0 };

	while (cuda_ended(door) < ended && gp_level_now() < end) {
		t.tv_nsec = (long)nap;
		(void)nanosleep(&t, NULL);
		nap = nap * 2 < LAST_NAP_NS ? nap * 2 : LAST_NAP_NS;
	}
}

static struct gp_door_ops ops = { .name = "cuda",
				  .deep = DEEP,
				  .gate = cuda_gate,
				  .ended = cuda_ended,
				  .taken = cuda_taken,
				  .wait = cuda_wait };

/* Contexts, and what the device may read and write in them */

/* Where another thread captures, this one would break its graph. */
static int register_words(struct cuda_context *c)
{
	int mode = GP_CU_RELAXED, r;

	if (cu.exchange_mode(&mode) != GP_CU_SUCCESS)
		return -1;
	r = cu.host_register(c->words, SLOTS * sizeof(*c->words), GP_CU_REGISTER);
	if (r == GP_CU_SUCCESS)
		r = cu.address(&c->address, c->words, 0);
	(void)cu.exchange_mode(&mode);
	return r == GP_CU_SUCCESS ? 0 : -1;
}

/* Those that it had stay where they are: the device may still know them. */
static int take_words(struct cuda_context *c)
{
	void *words = mmap(NULL, SLOTS * sizeof(*c->words), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		return -1;
	c->words = words;
	for (uint32_t i = 0; i < SLOTS; i++)
		c->words[i].count = c->last[i] = FIRST_COUNT;
	return 0;
}

/* Nothing of the context that went waits there, or is written there later. */
static int is_quiet(const struct cuda_context *c)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&c->words[i].count, __ATOMIC_SEQ_CST) != c->last[i])
			return 0;
	return 1;
}

static struct cuda_context *new_context(void)
{
	struct cuda_context *c = calloc(1, sizeof(*c));

	if (!c || take_words(c) < 0) {
		free(c);
		return NULL;
	}
	gp_list_append(&contexts, &c->link);
	return c;
}

static struct cuda_context *find_context(gp_cu_context handle)
{
	gp_list_each(at, &contexts) {
		struct cuda_context *c = gp_container(at, struct cuda_context, link);

		if (c->handle == handle)
			return c;
	}
	return NULL;
}

/* NULL: there is no memory. */
static struct cuda_context *get_context(gp_cu_context handle)
{
	struct cuda_context *c;
	int is_new;

	pthread_mutex_lock(&lock);
	c = find_context(handle);
	is_new = !c;
	if (!c)
		c = find_context(NULL);
	if (!c)
		c = new_context();
	if (c && is_new) {
		c->handle = handle;
		c->address = 0;
	}
	pthread_mutex_unlock(&lock);
	if (!c || !is_new || (is_quiet(c) && register_words(c) == 0))
		return c;
	/* That a context's end makes its memory free for the next is written nowhere. */
	if (take_words(c) < 0 || register_words(c) < 0)
		c->address = 0;
	return c;
}

/* A slot whose last write has come, so that none comes to the next who has it. */
static int take_slot(struct cuda_queue *q)
{
	struct cuda_context *c = q->context;

	for (uint32_t i = 0; c->address && i < SLOTS; i++) {
		if (c->is_taken[i] || __atomic_load_n(&c->words[i].count, __ATOMIC_SEQ_CST) != c->last[i])
			continue;
		c->is_taken[i] = 1;
		q->slot = i;
		q->base = c->last[i];
		q->words = &c->words[i];
		q->address = c->address + i * sizeof(*c->words);
		__atomic_store_n(&q->words->gate, 1, __ATOMIC_SEQ_CST);
		return 0;
	}
	return -1;
}

/* Streams */

static int is_special(gp_cu_stream stream)
{
	return stream == GP_CU_LEGACY || stream == GP_CU_PER_THREAD;
}

/* CUDA has no priority below the usual one. A stream that blocks is ordered with the legacy one: whoever held
 * that for it would wait for himself. */
static uint32_t class_of(gp_cu_stream stream)
{
	uint32_t said = gp_doors_class(), flags = 0;
	int priority = 0;

	if (said != GP_CLASS_UNKNOWN || is_special(stream))
		return said;
	if (cu.get_priority(stream, &priority) != GP_CU_SUCCESS || priority >= 0)
		return said;
	return cu.get_flags(stream, &flags) == GP_CU_SUCCESS && flags & GP_CU_NON_BLOCKING ? GP_CLASS_ONLINE
											   : said;
}

static struct gp_list *bucket_of(gp_cu_stream stream)
{
	struct gp_list *bucket = &streams[((uintptr_t)stream >> 4) % BUCKETS];

	if (!bucket->next)
		gp_list_init(bucket);
	return bucket;
}

/* Not pthread_t: when a thread has ended the next one may have that, and not its stream. 0: there is none. */
static uintptr_t thread_number(void)
{
	static uintptr_t last;
	uintptr_t number = has_thread_key ? (uintptr_t)pthread_getspecific(thread_key) : 0;

	if (number || !has_thread_key)
		return number;
	number = __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
	return pthread_setspecific(thread_key, (void *)number) ? 0 : number; /* how a number is kept */
}

static int is_it(const struct cuda_queue *q, gp_cu_context context, gp_cu_stream stream)
{
	if (q->stream != stream || (is_special(stream) && q->context->handle != context))
		return 0;
	return stream != GP_CU_PER_THREAD || q->thread == thread_number();
}

static void limit(struct cuda_queue *q)
{
	if (q->level)
		gp_level_limit(q->level, q->context->is_crowded ? 1u << GP_LEVEL_THROTTLE : UINT32_MAX);
}

/* With the lock held. The program has no name for a thread's own stream that is this one's alone. */
static void look_after(struct cuda_queue *q, struct gp_door_queue *is)
{
	is->stream = q->stream == GP_CU_PER_THREAD ? NULL : q->stream;
	if (take_slot(q) < 0)
		return;
	q->level = gp_level_add(&ops, q, is);
	if (!q->level)
		q->context->is_taken[q->slot] = 0;
	else
		limit(q);
}

static struct cuda_queue *find(gp_cu_context context, gp_cu_stream stream)
{
	struct cuda_queue *found = NULL;

	pthread_mutex_lock(&lock);
	gp_list_each(at, bucket_of(stream)) {
		struct cuda_queue *q = gp_container(at, struct cuda_queue, link);

		if (is_it(q, context, stream))
			found = q;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* As RM names it, and so gpreemptd (discover/nvidia.c). 0: it is not to be had. */
static uint32_t gpu_id_of(int device)
{
	unsigned int domain, bus, place;
	char text[32] = "";

	if (cu.bus_id(text, sizeof(text), device) != GP_CU_SUCCESS ||
	    sscanf(text, "%8x:%2x:%2x", &domain, &bus, &place) != 3)
		return 0;
	return (domain & 0xffff) << 16 | bus << 8 | place;
}

static struct cuda_queue *add(gp_cu_context context, gp_cu_stream stream)
{
	struct gp_door_queue is = { .client_class = class_of(stream) };
	struct cuda_context *c = get_context(context);
	struct cuda_queue *q = c ? calloc(1, sizeof(*q)) : NULL;
	int device = 0, r = cu.get_device(&device);

	if (!q)
		return NULL;
	is.device = (uint64_t)device;
	is.gpu_id = gpu_id_of(device);
	q->context = c;
	q->stream = stream;
	q->thread = stream == GP_CU_PER_THREAD ? thread_number() : 0;
	(void)pthread_mutex_init(&q->order, NULL);
	pthread_mutex_lock(&lock);
	if (r == GP_CU_SUCCESS)
		look_after(q, &is); /* or it is known that it is left alone */
	gp_list_append(bucket_of(stream), &q->link);
	pthread_mutex_unlock(&lock);
	return q;
}

static struct cuda_queue *get(gp_cu_context context, gp_cu_stream stream)
{
	struct cuda_queue *q = find(context, stream);

	if (q)
		return q;
	pthread_mutex_lock(&making);
	q = find(context, stream);
	if (!q)
		q = add(context, stream);
	pthread_mutex_unlock(&making);
	return q;
}

/* With the lock held. */
static void for_each_of(const struct cuda_context *c, void (*fn)(struct cuda_queue *q))
{
	for (uint32_t i = 0; i < BUCKETS; i++) {
		if (!streams[i].next)
			continue;
		gp_list_each_safe(at, &streams[i]) {
			struct cuda_queue *q = gp_container(at, struct cuda_queue, link);

			if (q->context == c)
				fn(q);
		}
	}
}

/* The same. Streams that were made and never used, of which some programs have many, keep nobody. */
static void count_use(struct cuda_context *c, uint32_t more)
{
	uint32_t is_crowded;

	c->in_use += more;
	is_crowded = c->in_use > most_gated;
	if (is_crowded == c->is_crowded)
		return;
	c->is_crowded = is_crowded;
	for_each_of(c, limit);
}

/* With the lock held; the engine calls nothing of ours that takes it, and nothing here that waits for CUDA.
 */
static void forget(struct cuda_queue *q)
{
	gp_list_remove(&q->link);
	count_use(q->context, -q->is_used);
	if (q->level) {
		gp_level_remove(q->level);
		q->context->last[q->slot] = q->base + (uint32_t)q->told;
		q->context->is_taken[q->slot] = 0;
	}
	pthread_mutex_destroy(&q->order);
	free(q);
}

static void stream_goes(gp_cu_stream stream)
{
	pthread_mutex_lock(&lock);
	gp_list_each_safe(at, bucket_of(stream)) {
		struct cuda_queue *q = gp_container(at, struct cuda_queue, link);

		if (q->stream == stream)
			forget(q);
	}
	pthread_mutex_unlock(&lock);
}

/* Its own stream goes with it, and CUDA does not say so. */
static void thread_goes(void *number)
{
	if (gp_engine.is_foreign)
		return;
	pthread_mutex_lock(&lock);
	gp_list_each_safe(at, bucket_of(GP_CU_PER_THREAD)) {
		struct cuda_queue *q = gp_container(at, struct cuda_queue, link);

		if (q->thread == (uintptr_t)number)
			forget(q);
	}
	pthread_mutex_unlock(&lock);
}

static void context_goes(gp_cu_context handle)
{
	pthread_mutex_lock(&lock);
	gp_list_each(at, &contexts) {
		struct cuda_context *c = gp_container(at, struct cuda_context, link);

		if (c->handle != handle)
			continue;
		for_each_of(c, forget);
		c->handle = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* Launches */

static void note_use(struct cuda_queue *q)
{
	if (__atomic_load_n(&q->is_used, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	count_use(q->context, !q->is_used);
	__atomic_store_n(&q->is_used, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* The device does not do it: nobody may wait for what it would have written. */
static void lose(struct cuda_queue *q)
{
	__atomic_store_n(&q->is_lost, 1, __ATOMIC_SEQ_CST);
	(void)gp_level_set(q->level, GP_LEVEL_NONE); /* which opens the gate */
}

/* What a stream captures runs when its graph does, which is a launch. Unknown is so too: of the legacy stream
 * while another captures. */
static int is_capturing(gp_cu_stream stream)
{
	int status = GP_CU_NOT_CAPTURING;

	return cu.is_capturing(stream, &status) != GP_CU_SUCCESS || status != GP_CU_NOT_CAPTURING;
}

static void before_launch(const struct gp_cupti_call *call, gp_cu_stream stream)
{
	struct cuda_queue *q;
	uint32_t adds;

	*call->data = 0;
	if (!call->context || (stream == GP_CU_PER_THREAD && !thread_number()))
		return;
	q = get(call->context, stream);
	if (q)
		note_use(q);
	if (!q || !q->level || __atomic_load_n(&q->is_lost, __ATOMIC_SEQ_CST) ||
	    !__atomic_load_n(&q->level->adds, __ATOMIC_ACQUIRE) || is_capturing(stream))
		return;
	adds = gp_level_launch(q->level, 1);
	if (!(adds & GP_ADD_COUNT))
		return;
	__atomic_add_fetch(&q->begun, 1, __ATOMIC_SEQ_CST);
	if (adds & GP_ADD_GATE && cu.wait_value(stream, q->address + offsetof(struct cuda_words, gate), 1,
						GP_CU_WAIT_GEQ) != GP_CU_SUCCESS)
		lose(q);
	else
		*call->data = (uintptr_t)q;
}

/* One that was refused has ended too. */
static void after_launch(const struct gp_cupti_call *call, gp_cu_stream stream)
{
	struct cuda_queue *q;
	int r;

	memcpy(&q, call->data, sizeof(q));
	if (!q)
		return;
	pthread_mutex_lock(&q->order);
	q->told++;
	r = cu.write_value(stream, q->address + offsetof(struct cuda_words, count),
			   q->base + (uint32_t)q->told, 0);
	pthread_mutex_unlock(&q->order);
	if (r != GP_CU_SUCCESS)
		lose(q);
}

/* CUPTI */

static int is_ptsz(uint32_t id)
{
	return id == GP_CUPTI_LAUNCH_PTSZ || id == GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ ||
	       id == GP_CUPTI_GRAPH_LAUNCH_PTSZ || id == GP_CUPTI_LAUNCH_EX_PTSZ;
}

/* -1: this is no launch. */
static int stream_of(uint32_t id, const void *params, gp_cu_stream *ret)
{
	const struct gp_cu_launch_ex_params *ex = params;

	switch (id) {
	case GP_CUPTI_LAUNCH:
	case GP_CUPTI_LAUNCH_PTSZ:
	case GP_CUPTI_LAUNCH_COOPERATIVE:
	case GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ:
		*ret = ((const struct gp_cu_launch_params *)params)->stream;
		break;
	case GP_CUPTI_LAUNCH_EX:
	case GP_CUPTI_LAUNCH_EX_PTSZ:
		if (!ex->config)
			return -1;
		*ret = ex->config->stream;
		break;
	case GP_CUPTI_GRAPH_LAUNCH:
	case GP_CUPTI_GRAPH_LAUNCH_PTSZ:
		*ret = ((const struct gp_cu_graph_launch_params *)params)->stream;
		break;
	default:
		return -1;
	}
	if (!*ret)
		*ret = is_ptsz(id) ? GP_CU_PER_THREAD : GP_CU_LEGACY;
	return 0;
}

/* So that a program can name it before its first launch. */
static void stream_came(const struct gp_cupti_call *call)
{
	const struct gp_cu_stream_create_params *params = call->params;

	if (call->site == GP_CUPTI_EXIT && call->result && *call->result == GP_CU_SUCCESS && call->context)
		(void)get(call->context, *params->stream);
}

static void called(uint32_t id, const struct gp_cupti_call *call)
{
	gp_cu_stream stream;

	if (id == GP_CUPTI_STREAM_CREATE || id == GP_CUPTI_STREAM_CREATE_WITH_PRIORITY)
		stream_came(call);
	else if (stream_of(id, call->params, &stream) < 0)
		return;
	else if (call->site == GP_CUPTI_ENTER)
		before_launch(call, stream);
	else
		after_launch(call, stream);
}

static void callback(void *data, uint32_t domain, uint32_t id, const void *info)
{
	const struct gp_cupti_resource *resource = info;

	(void)data;
	if (gp_engine.is_foreign)
		return;
	if (domain == GP_CUPTI_DRIVER)
		called(id, info);
	else if (domain == GP_CUPTI_RESOURCE && id == GP_CUPTI_STREAM_GOES)
		stream_goes(resource->stream);
	else if (domain == GP_CUPTI_RESOURCE && id == GP_CUPTI_CONTEXT_GOES)
		context_goes(resource->context);
}

/* The door */

#define TAKE(library, entry, name) (*(void **)&(entry) = dlsym(library, name)) /* how POSIX writes it */

static int find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	return library && TAKE(library, cu.wait_value, "cuStreamWaitValue32_v2") &&
	       TAKE(library, cu.write_value, "cuStreamWriteValue32_v2") &&
	       TAKE(library, cu.is_capturing, "cuStreamIsCapturing") &&
	       TAKE(library, cu.exchange_mode, "cuThreadExchangeStreamCaptureMode") &&
	       TAKE(library, cu.get_priority, "cuStreamGetPriority") &&
	       TAKE(library, cu.get_flags, "cuStreamGetFlags") &&
	       TAKE(library, cu.get_device, "cuCtxGetDevice") &&
	       TAKE(library, cu.bus_id, "cuDeviceGetPCIBusId") &&
	       TAKE(library, cu.host_register, "cuMemHostRegister_v2") &&
	       TAKE(library, cu.address, "cuMemHostGetDevicePointer_v2");
}

static int find_calls(void *library)
{
	return TAKE(library, cupti.subscribe, "cuptiSubscribe") &&
	       TAKE(library, cupti.unsubscribe, "cuptiUnsubscribe") &&
	       TAKE(library, cupti.enable, "cuptiEnableCallback");
}

/* All, or none: a launch that nobody sees is held by nobody. */
static int enable_all(void *subscriber)
{
	static const uint32_t calls[] = {
		GP_CUPTI_STREAM_CREATE,
		GP_CUPTI_STREAM_CREATE_WITH_PRIORITY,
		GP_CUPTI_LAUNCH,
		GP_CUPTI_LAUNCH_PTSZ,
		GP_CUPTI_LAUNCH_COOPERATIVE,
		GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ,
		GP_CUPTI_GRAPH_LAUNCH,
		GP_CUPTI_GRAPH_LAUNCH_PTSZ,
		GP_CUPTI_LAUNCH_EX,
		GP_CUPTI_LAUNCH_EX_PTSZ,
	};
	int r = cupti.enable(1, subscriber, GP_CUPTI_RESOURCE, GP_CUPTI_CONTEXT_GOES);

	if (r == 0)
		r = cupti.enable(1, subscriber, GP_CUPTI_RESOURCE, GP_CUPTI_STREAM_GOES);
	for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
		r = cupti.enable(1, subscriber, GP_CUPTI_DRIVER, calls[i]);
	return r;
}

/* 0, or what CUPTI says. */
static int subscribe(void)
{
	void *subscriber = NULL;
	int r = cupti.subscribe(&subscriber, callback, NULL);

	if (r)
		return r;
	r = enable_all(subscriber);
	if (r)
		(void)cupti.unsubscribe(subscriber);
	return r;
}

/* The program's own first, whatever its release. */
static void *load(const char *name)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

	return library ? library : dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

static int try_cupti(const char *name, int *ret_status)
{
	void *library = name && *name ? load(name) : NULL;

	if (!library || !find_calls(library))
		return 0;
	*ret_status = subscribe();
	return *ret_status == 0;
}

/* Where it is loaded already, in any release that we know; then where it may lie. */
static int find_cupti(int *ret_status)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12",
					     "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
					     "/usr/local/cuda/lib64/libcupti.so", "libcupti.so" };
	const size_t n = sizeof(names) / sizeof(names[0]);

	*ret_status = 0;
	if (try_cupti(secure_getenv("GPREEMPT_CUPTI"), ret_status))
		return 1;
	for (size_t i = 0; i < 2; i++)
		if (dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD))
			return try_cupti(names[i], ret_status);
	for (size_t i = 0; i < n && *ret_status != GP_CUPTI_MULTIPLE_SUBSCRIBERS; i++)
		if (try_cupti(names[i], ret_status))
			return 1;
	return 0;
}

/* Clients of MPS share one pool of connections: who asks for many may leave none to others (NVIDIA's MPS
 * documentation, CUDA_DEVICE_MAX_CONNECTIONS). */
static int is_mps_client(void)
{
	return getenv("CUDA_MPS_PIPE_DIRECTORY") || access("/tmp/nvidia-mps/control", F_OK) == 0;
}

/* As many as CUDA will use: what the program says of it stands, and else the door asks for the most. */
static uint32_t count_connections(void)
{
	const char *text = getenv(CONNECTIONS);
	unsigned long n;
	char *end;

	if (!text)
		return is_mps_client() ? USUAL_CONNECTIONS : MOST_CONNECTIONS;
	n = strtoul(text, &end, 10);
	return !n || *end || n > MOST_CONNECTIONS ? USUAL_CONNECTIONS : (uint32_t)n;
}

/* CUDA reads it for the first context, which comes later. */
static void ask_for_connections(void)
{
	if (!(ops.levels & 1u << GP_LEVEL_GATE) || is_mps_client())
		return;
	if (setenv(CONNECTIONS, "32", 0) < 0) /* there is no memory */
		most_gated = USUAL_CONNECTIONS * 3 / 4;
}

static void open_door(char *why, size_t size)
{
	int status;

	*why = '\0';
	if (gp_doors_are_off()) {
		(void)snprintf(why, size, "GPREEMPT_LEVEL is off");
		return;
	}
	if (!find_driver()) {
		(void)snprintf(why, size,
			       "this driver has no waits for values in streams: CUDA 11.7 has them");
		return;
	}
	most_gated = count_connections() * 3 / 4;
	ops.levels = gp_doors_levels(1u << GP_LEVEL_THROTTLE | (most_gated ? 1u << GP_LEVEL_GATE : 0));
	gp_doors_set_wait();
	if (find_cupti(&status)) {
		ask_for_connections();
		return;
	}
	if (!status)
		(void)snprintf(why, size, "libcupti.so is not here: GPREEMPT_CUPTI may name it");
	else if (status == GP_CUPTI_MULTIPLE_SUBSCRIBERS)
		(void)snprintf(why, size, "a profiler or debugger has CUPTI, which lets in one alone");
	else
		(void)snprintf(why, size, "CUPTI does not open: error %d", status);
}

/* Whatever it returns, the driver goes on; 1 is what NVIDIA's own do. */
int InitializeInjection(void)
{
	static uint32_t is_tried;
	char why[256];

	if (__atomic_exchange_n(&is_tried, 1, __ATOMIC_SEQ_CST))
		return 1;
	has_thread_key = pthread_key_create(&thread_key, thread_goes) == 0; /* else those are left alone */
	open_door(why, sizeof(why));
	gp_doors_say(GP_DOOR_CUDA, *why ? why : NULL);
	return 1;
}
