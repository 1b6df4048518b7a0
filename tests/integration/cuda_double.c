// SPDX-License-Identifier: MIT
/*
 * CUDA's driver as far as a program of these tests and libgpreempt-level.so need it, and CUPTI, on a machine
 * that has neither: libcuda.so.1, and with CUPTI defined libcupti.so.13, which hands its subscriber to the
 * other.  Streams are lists of what is to be done, and a thread is the device: kernels take their time, waits
 * look at a word of memory, writes write one.  Like CUDA's, a stream has place for 1024 of them, and whoever
 * waits for place there keeps a lock that every other stream needs.
 *
 * A kernel's first parameter is its length in ns; the second, if it is not 0, a device's address where it
 * counts when it ends. CUDA_DOUBLE_FAILS: the name of a call that is not there, or fails; "NAME:N": after N
 * times.
 */
#include "cuda_double.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef CUPTI

int cuptiSubscribe(void **ret, gp_cupti_callback *callback, void *data)
{
	static int subscriber;

	if (cuda_double_fails("cuptiSubscribe"))
		return 39;
	*ret = &subscriber;
	return cuda_double_subscribe(callback, data);
}

int cuptiUnsubscribe(void *subscriber)
{
	(void)subscriber;
	return cuda_double_subscribe(NULL, NULL);
}

int cuptiEnableCallback(uint32_t is_on, void *subscriber, uint32_t domain, uint32_t id)
{
	(void)subscriber;
	if (cuda_double_fails("cuptiEnableCallback"))
		return 1;
	return cuda_double_enable(is_on, domain, id);
}

#else

#define PLACES 1024
#define MOST_STREAMS 512
#define MOST_IDS 1024

enum { KERNEL, WAIT, WRITE };

struct op {
	uint32_t kind, value;
	uint64_t ns;
	uint32_t *at;
};

struct CUctx_st {
	int device, is_dead;
};

struct CUstream_st {
	struct CUstream_st *next; /* of all that ever were: tests ask those that went */
	struct CUctx_st *context;
	int priority, is_capturing, is_going;
	uint32_t flags;
	struct op ops[PLACES];
	uint64_t put, done;
	uint64_t since_ns; /* its kernel began */
	uint64_t kernels;
	char text[PLACES * 4 + 1]; /* what was put: K, W, C */
};

static pthread_mutex_t driver = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *streams[MOST_STREAMS];
static struct CUstream_st legacy[2], *own_streams[MOST_STREAMS], *all;
static struct CUctx_st contexts[2] = { { .device = 0 }, { .device = 0 } };
static __thread struct CUctx_st *current = &contexts[0];
static __thread struct CUstream_st *own;
static __thread int mode;
static gp_cupti_callback *subscriber;
static void *subscribers;
static uint8_t enabled[4][MOST_IDS];
static int is_loading; /* the next launch has a module to load */
static char broken[64];
static long broken_after;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void nap(long ns)
{
	const struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

void cuda_double_fail(const char *name)
{
	char *number;

	snprintf(broken, sizeof(broken), "%s", name);
	number = strchr(broken, ':');
	broken_after = number ? atol(number + 1) : 0;
	if (number)
		*number = '\0';
}

int cuda_double_fails(const char *name)
{
	return broken[0] && !strcmp(name, broken) &&
	       __atomic_fetch_sub(&broken_after, 1, __ATOMIC_SEQ_CST) <= 0;
}

int cuda_double_subscribe(gp_cupti_callback *callback, void *data)
{
	if (callback && subscriber)
		return GP_CUPTI_MULTIPLE_SUBSCRIBERS;
	subscriber = callback;
	subscribers = data;
	return 0;
}

int cuda_double_enable(uint32_t is_on, uint32_t domain, uint32_t id)
{
	if (domain > 3 || id >= MOST_IDS)
		return 1;
	enabled[domain][id] = (uint8_t)is_on;
	return 0;
}

/* The device */

static int is_done(struct CUstream_st *s, struct op *op)
{
	if (op->kind == WAIT)
		return (int32_t)(__atomic_load_n(op->at, __ATOMIC_SEQ_CST) - op->value) >= 0;
	if (op->kind == WRITE) {
		__atomic_store_n(op->at, op->value, __ATOMIC_SEQ_CST);
		return 1;
	}
	if (!s->since_ns)
		s->since_ns = now_ns();
	if (now_ns() < s->since_ns + op->ns)
		return 0;
	s->since_ns = 0;
	if (op->at)
		__atomic_add_fetch(op->at, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&s->kernels, 1, __ATOMIC_SEQ_CST);
	return 1;
}

static void step(struct CUstream_st *s)
{
	while (s && !s->context->is_dead && s->done < __atomic_load_n(&s->put, __ATOMIC_ACQUIRE) &&
	       is_done(s, &s->ops[s->done % PLACES]))
		__atomic_add_fetch(&s->done, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		for (int i = 0; i < MOST_STREAMS; i++) {
			struct CUstream_st *s = __atomic_load_n(&streams[i], __ATOMIC_ACQUIRE);

			step(s);
			if (s && __atomic_load_n(&s->is_going, __ATOMIC_SEQ_CST) && s->done == s->put)
				__atomic_store_n(&streams[i], NULL, __ATOMIC_RELEASE);
			step(__atomic_load_n(&own_streams[i], __ATOMIC_ACQUIRE));
		}
		step(&legacy[0]);
		step(&legacy[1]);
		nap(5000);
	}
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	legacy[0].context = &contexts[0];
	legacy[1].context = &contexts[1];
	if (getenv("CUDA_DOUBLE_FAILS"))
		cuda_double_fail(getenv("CUDA_DOUBLE_FAILS"));
	pthread_create(&thread, NULL, work, NULL);
	pthread_detach(thread);
}

/* Streams */

static void keep(struct CUstream_st **where, struct CUstream_st *s)
{
	for (int i = 0; i < MOST_STREAMS; i++)
		if (!where[i]) {
			__atomic_store_n(&where[i], s, __ATOMIC_RELEASE);
			return;
		}
	abort();
}

static struct CUstream_st *make(struct CUstream_st **where, uint32_t flags, int priority)
{
	struct CUstream_st *s = calloc(1, sizeof(*s));

	s->context = current;
	s->flags = flags;
	s->priority = priority;
	pthread_mutex_lock(&driver);
	s->next = all;
	all = s;
	keep(where, s);
	pthread_mutex_unlock(&driver);
	return s;
}

struct CUstream_st *cuda_double_stream(gp_cu_stream stream, int is_ptsz)
{
	if (stream == GP_CU_PER_THREAD || (!stream && is_ptsz)) {
		if (!own)
			own = make(own_streams, 0, 0);
		return own;
	}
	if (!stream || stream == GP_CU_LEGACY)
		return &legacy[current - contexts];
	return stream;
}

const char *cuda_double_text(gp_cu_stream stream)
{
	return cuda_double_stream(stream, 0)->text;
}

uint64_t cuda_double_kernels(gp_cu_stream stream)
{
	return __atomic_load_n(&cuda_double_stream(stream, 0)->kernels, __ATOMIC_SEQ_CST);
}

static int put(struct CUstream_st *s, struct op op)
{
	size_t at;

	if (s->context->is_dead)
		return CUDA_DOUBLE_DEAD;
	pthread_mutex_lock(&driver);
	while (s->put - __atomic_load_n(&s->done, __ATOMIC_SEQ_CST) >= PLACES)
		nap(10000);
	s->ops[s->put % PLACES] = op;
	at = strlen(s->text);
	if (at + 1 < sizeof(s->text))
		s->text[at] = "KWC"[op.kind];
	__atomic_add_fetch(&s->put, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&driver);
	return 0;
}

/* Callbacks */

static void tell(uint32_t domain, uint32_t id, const void *info)
{
	if (subscriber && enabled[domain][id])
		subscriber(subscribers, domain, id, info);
}

static void call(uint32_t id, uint32_t site, const void *params, const int *result, uint64_t *data)
{
	const struct gp_cupti_call info = {
		.site = site, .params = params, .result = result, .context = current, .data = data
	};

	tell(GP_CUPTI_DRIVER, id, &info);
}

static void went(uint32_t id, struct CUctx_st *context, struct CUstream_st *stream)
{
	const struct gp_cupti_resource info = { .context = context, .stream = stream };

	tell(GP_CUPTI_RESOURCE, id, &info);
}

/* The driver's calls */

int cuInit(unsigned int flags)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;

	(void)flags;
	if (cuda_double_fails("cuInit"))
		return CUDA_DOUBLE_NO_DEVICE;
	if (initialize)
		initialize();
	return 0;
}

/* As far as a program goes there before it launches. */

int cuDeviceGet(int *ret, int ordinal)
{
	*ret = ordinal;
	return 0;
}

int cuDeviceGetAttribute(int *ret, int attribute, int device)
{
	(void)attribute, (void)device;
	*ret = 1;
	return 0;
}

int cuDevicePrimaryCtxRetain(gp_cu_context *ret, int device)
{
	(void)device;
	*ret = &contexts[0];
	return 0;
}

int cuCtxSetCurrent(gp_cu_context context)
{
	current = context;
	return 0;
}

int cuModuleLoadData(void **ret, const void *image)
{
	*ret = (void *)(uintptr_t)image;
	return 0;
}

int cuModuleGetFunction(void **ret, void *module, const char *name)
{
	(void)name;
	*ret = module;
	return 0;
}

int cuMemHostAlloc(void **ret, size_t size, unsigned int flags)
{
	(void)flags;
	*ret = calloc(1, size);
	return 0;
}

int cuMemAlloc_v2(uint64_t *ret, size_t size)
{
	*ret = (uintptr_t)calloc(1, size);
	return 0;
}

int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t size)
{
	memset((void *)(uintptr_t)at, byte, size);
	return 0;
}

static int create(uint32_t id, gp_cu_stream *ret, uint32_t flags, int priority)
{
	struct {
		gp_cu_stream *stream;
		uint32_t flags;
		int priority;
	} params = { ret, flags, priority };
	uint64_t data = 0;
	int r = 0;

	call(id, GP_CUPTI_ENTER, &params, NULL, &data);
	*ret = make(streams, flags, priority);
	call(id, GP_CUPTI_EXIT, &params, &r, &data);
	return r;
}

int cuStreamCreate(gp_cu_stream *ret, unsigned int flags)
{
	return create(GP_CUPTI_STREAM_CREATE, ret, flags, 0);
}

int cuStreamCreateWithPriority(gp_cu_stream *ret, unsigned int flags, int priority)
{
	return create(GP_CUPTI_STREAM_CREATE_WITH_PRIORITY, ret, flags, priority);
}

/* With the driver's lock, as CUDA may: whoever calls the driver under a lock of his own stands still. */
int cuStreamDestroy_v2(gp_cu_stream stream)
{
	pthread_mutex_lock(&driver);
	went(GP_CUPTI_STREAM_GOES, stream->context, stream);
	__atomic_store_n(&stream->is_going, 1, __ATOMIC_SEQ_CST); /* when all that was put there is done */
	pthread_mutex_unlock(&driver);
	return 0;
}

int cuStreamGetPriority(gp_cu_stream stream, int *ret)
{
	pthread_mutex_lock(&driver);
	*ret = stream->priority;
	pthread_mutex_unlock(&driver);
	return cuda_double_fails("cuStreamGetPriority");
}

int cuStreamGetFlags(gp_cu_stream stream, unsigned int *ret)
{
	*ret = stream->flags;
	return 0;
}

int cuStreamSynchronize(gp_cu_stream stream)
{
	struct CUstream_st *s = cuda_double_stream(stream, 0);

	while (!s->context->is_dead &&
	       __atomic_load_n(&s->done, __ATOMIC_SEQ_CST) < __atomic_load_n(&s->put, __ATOMIC_SEQ_CST))
		nap(10000);
	return s->context->is_dead ? CUDA_DOUBLE_DEAD : 0;
}

int cuStreamBeginCapture_v2(gp_cu_stream stream, int how)
{
	(void)how;
	stream->is_capturing = 1;
	return 0;
}

int cuStreamEndCapture(gp_cu_stream stream, void **ret_graph)
{
	stream->is_capturing = 0;
	*ret_graph = stream;
	return 0;
}

int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags)
{
	(void)flags;
	*ret = graph;
	return 0;
}

int cuCtxGetStreamPriorityRange(int *ret_least, int *ret_most)
{
	*ret_least = 0;
	*ret_most = -5;
	return 0;
}

/* The legacy stream cannot tell while another captures. */
int cuStreamIsCapturing(gp_cu_stream stream, int *ret)
{
	struct CUstream_st *s = cuda_double_stream(stream, 0);

	*ret = s->is_capturing;
	for (int i = 0; i < MOST_STREAMS; i++)
		if ((s == &legacy[0] || s == &legacy[1]) && streams[i] && streams[i]->is_capturing)
			return CUDA_DOUBLE_CAPTURE;
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *with)
{
	int before = mode;

	mode = *with;
	*with = before;
	return 0;
}

int cuStreamWaitValue32_v2(gp_cu_stream stream, uint64_t at, uint32_t value, unsigned int flags)
{
	struct CUstream_st *s = cuda_double_stream(stream, 0);

	if (s->is_capturing || cuda_double_fails("cuStreamWaitValue32_v2") || flags != GP_CU_WAIT_GEQ)
		return CUDA_DOUBLE_REFUSED;
	return put(s, (struct op){ .kind = WAIT,
				   .at = (uint32_t *)(uintptr_t)(at - CUDA_DOUBLE_FAR),
				   .value = value });
}

int cuStreamWriteValue32_v2(gp_cu_stream stream, uint64_t at, uint32_t value, unsigned int flags)
{
	struct CUstream_st *s = cuda_double_stream(stream, 0);

	if (s->is_capturing || cuda_double_fails("cuStreamWriteValue32_v2") || flags)
		return CUDA_DOUBLE_REFUSED;
	return put(s, (struct op){ .kind = WRITE,
				   .at = (uint32_t *)(uintptr_t)(at - CUDA_DOUBLE_FAR),
				   .value = value });
}

/* In a thread that may not, as while another captures, a graph would be lost. */
int cuMemHostRegister_v2(void *at, size_t size, unsigned int flags)
{
	static void *known[64]; /* for good: nobody says that a context's end forgets them */
	static int nknown;

	(void)size;
	if (mode != GP_CU_RELAXED || flags != GP_CU_REGISTER || nknown == 64)
		abort();
	for (int i = 0; i < nknown; i++)
		if (known[i] == at)
			return CUDA_DOUBLE_KNOWN;
	if (cuda_double_fails("cuMemHostRegister_v2"))
		return CUDA_DOUBLE_REFUSED;
	known[nknown++] = at;
	return 0;
}

int cuMemHostGetDevicePointer_v2(uint64_t *ret, void *at, unsigned int flags)
{
	(void)flags;
	*ret = (uintptr_t)at + CUDA_DOUBLE_FAR;
	return 0;
}

int cuCtxGetDevice(int *ret)
{
	*ret = current ? current->device : 0;
	return current && !cuda_double_fails("cuCtxGetDevice") ? 0 : CUDA_DOUBLE_REFUSED;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
	const char *address = getenv("CUDA_DOUBLE_ADDRESS"); /* none: it is not told */

	(void)device;
	snprintf(text, (size_t)size, "%s", address ? address : "");
	return address ? 0 : CUDA_DOUBLE_REFUSED;
}

int cuda_double_use(int context)
{
	current = context < 0 ? NULL : &contexts[context];
	return 0;
}

void cuda_double_move(int context, int device)
{
	contexts[context].device = device;
}

int cuda_double_mode(void)
{
	return mode;
}

void cuda_double_destroy(int context)
{
	went(GP_CUPTI_CONTEXT_GOES, &contexts[context], NULL);
}

/* A fault: nothing goes on there, and every call fails. */
void cuda_double_kill(int context)
{
	contexts[context].is_dead = 1;
}

void cuda_double_load(void)
{
	is_loading = 1;
}

static void drain(struct CUctx_st *context)
{
	for (int i = 0; i < MOST_STREAMS; i++) {
		struct CUstream_st *s = streams[i];

		while (s && s->context == context && __atomic_load_n(&s->done, __ATOMIC_SEQ_CST) < s->put)
			nap(10000);
	}
}

static int run(uint32_t id, const void *params, gp_cu_stream stream, int is_ptsz, void **args)
{
	struct CUstream_st *s = cuda_double_stream(stream, is_ptsz);
	struct op op = { .kind = KERNEL };
	uint64_t data = 0, at;
	int r;

	call(id, GP_CUPTI_ENTER, params, NULL, &data);
	if (args) {
		memcpy(&op.ns, args[0], sizeof(op.ns));
		memcpy(&at, args[1], sizeof(at));
		op.at = at ? (uint32_t *)(uintptr_t)(at - CUDA_DOUBLE_FAR) : NULL;
	}
	if (__atomic_exchange_n(&is_loading, 0, __ATOMIC_SEQ_CST))
		drain(s->context); /* as CUDA does where modules are loaded when they are needed */
	r = cuda_double_fails("cuLaunchKernel") ? CUDA_DOUBLE_REFUSED : s->is_capturing ? 0 : put(s, op);
	call(id, GP_CUPTI_EXIT, params, &r, &data);
	return r;
}

static int launch(uint32_t id, int is_ptsz, gp_cu_stream stream, void **args)
{
	const struct gp_cu_launch_params params = { .stream = stream };

	return run(id, &params, stream, is_ptsz, args);
}

int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, gp_cu_stream stream, void **args,
		   void **extra)
{
	(void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
	return launch(GP_CUPTI_LAUNCH, 0, stream, args);
}

int cuda_double_launch_ptsz(gp_cu_stream stream, void **args)
{
	return launch(GP_CUPTI_LAUNCH_PTSZ, 1, stream, args);
}

int cuda_double_launch_as(uint32_t id, gp_cu_stream stream)
{
	int is_ptsz = id == GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ || id == GP_CUPTI_LAUNCH_EX_PTSZ ||
		      id == GP_CUPTI_GRAPH_LAUNCH_PTSZ;
	const struct gp_cu_launch_config config = { .stream = stream };
	const struct gp_cu_launch_ex_params ex = { .config = &config };
	const struct gp_cu_graph_launch_params graph = { .stream = stream };

	if (id == GP_CUPTI_LAUNCH_EX || id == GP_CUPTI_LAUNCH_EX_PTSZ)
		return run(id, &ex, stream, is_ptsz, NULL);
	if (id == GP_CUPTI_GRAPH_LAUNCH || id == GP_CUPTI_GRAPH_LAUNCH_PTSZ)
		return run(id, &graph, stream, is_ptsz, NULL);
	return launch(id, is_ptsz, stream, NULL);
}

int cuLaunchKernelEx(const struct gp_cu_launch_config *config, void *function, void **args, void **extra)
{
	const struct gp_cu_launch_ex_params params = { .config = config };

	(void)function, (void)extra;
	return run(GP_CUPTI_LAUNCH_EX, &params, config->stream, 0, args);
}

int cuGraphLaunch(void *graph, gp_cu_stream stream)
{
	const struct gp_cu_graph_launch_params params = { .graph = graph, .stream = stream };

	return run(GP_CUPTI_GRAPH_LAUNCH, &params, stream, 0, NULL);
}

#endif
