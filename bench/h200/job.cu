// SPDX-License-Identifier: MIT
/*
 * job QUEUES: work on a CUDA GPU that takes gpreempt verify --job's orders and accounts for itself; gpreempt-verify(1) has them.
 *
 * A queue is a context of its own, for all streams of a context share one channel group.  The GPU itself counts what ended:
 * the last block of a kernel adds one to that kernel's slot, so one that was lost or ran twice is seen.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <poll.h>
#include <unistd.h>

#define DEPTH 8 /* kernels under way on each queue */
#define KERNEL_MS 2
#define MOST 64
#define THREADS 256
#define TRIES 64
#define SAMPLE 1000 /* iterations */

static struct queue {
	CUcontext context;
	volatile uint32_t *slots; /* the kernels that ended in each, by the GPU's count */
	uint32_t *arrived;        /* blocks of the kernel that runs */
	uint64_t begun, ended;
} queues[MOST];

static uint32_t n_queues, n_blocks;
static uint64_t per_ms; /* iterations */
static bool is_idle;

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "job: %s\n", cudaGetErrorString(error));
	exit(1);
}

static void check(CUresult result)
{
	const char *text = NULL;

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorString(result, &text);
	fprintf(stderr, "job: %s\n", text ? text : "no driver");
	exit(1);
}

__device__ uint64_t iterate(uint64_t x, uint64_t iterations)
{
	for (uint64_t n = 0; n < iterations; n++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

/* It counts what it does, not the time: one that was taken off the GPU has the rest still to do. */
__global__ void work(uint64_t iterations, uint32_t *arrived, uint32_t *slot)
{
	uint64_t x = iterate(2 + blockIdx.x * blockDim.x + threadIdx.x, iterations);

	if (x == 1) /* it is not, but the compiler may not leave the loop out */
		atomicAdd_system(slot, 1);
	__syncthreads();
	if (threadIdx.x == 0 && atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1) {
		__threadfence_system();
		atomicAdd_system(slot, 1);
	}
}

__global__ void sample(uint64_t iterations, uint64_t *cycles, uint64_t *kept)
{
	int64_t begin = clock64();
	uint64_t x = iterate(threadIdx.x, iterations);

	kept[threadIdx.x] = x;
	if (threadIdx.x == 0)
		*cycles = (uint64_t)(clock64() - begin);
}

static void use(struct queue *q)
{
	check(cuCtxSetCurrent(q->context));
}

static void create(struct queue *q)
{
	CUdevice device;

	check(cuDeviceGet(&device, 0));
	check(cuCtxCreate(&q->context, NULL, CU_CTX_SCHED_YIELD, device));
	use(q);
	check(cudaHostAlloc((void **)&q->slots, DEPTH * sizeof(*q->slots), cudaHostAllocMapped));
	memset((void *)q->slots, 0, DEPTH * sizeof(*q->slots));
	check(cudaMalloc(&q->arrived, sizeof(*q->arrived)));
	check(cudaMemset(q->arrived, 0, sizeof(*q->arrived)));
}

/* With as many threads on an SM as work() has.  The shortest of many: others' work may come between. */
static void calibrate(void)
{
	uint64_t *cycles, *kept, shortest = UINT64_MAX;
	int n_sms = 0, khz = 0;

	check(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, 0));
	check(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
	n_blocks = 4 * (uint32_t)n_sms;
	check(cudaHostAlloc((void **)&cycles, sizeof(*cycles), cudaHostAllocMapped));
	check(cudaMalloc(&kept, 4 * THREADS * sizeof(*kept)));
	for (int i = 0; i < TRIES; i++) {
		sample<<<1, 4 * THREADS>>>(SAMPLE, cycles, kept);
		check(cudaDeviceSynchronize());
		shortest = *cycles < shortest ? *cycles : shortest;
	}
	per_ms = (uint64_t)khz * SAMPLE / shortest;
}

static void begin(struct queue *q, uint64_t ms)
{
	use(q);
	work<<<n_blocks, THREADS>>>(ms * per_ms, q->arrived, (uint32_t *)&q->slots[q->begun % DEPTH]);
	check(cudaGetLastError());
	q->begun++;
}

/* CUDA loads the kernel at its first launch, and waits for the GPU then: not while it is held. */
static void warm_up(struct queue *q)
{
	begin(q, 0);
	check(cudaDeviceSynchronize());
}

/* Kernels of a queue end in order. */
static void count(struct queue *q)
{
	while (q->ended < q->begun && q->slots[q->ended % DEPTH] >= q->ended / DEPTH + 1)
		q->ended++;
}

static void serve(void)
{
	for (struct queue *q = queues; q < queues + n_queues; q++) {
		count(q);
		while (!is_idle && q->begun < q->ended + DEPTH)
			begin(q, KERNEL_MS);
	}
}

static void finish(void)
{
	is_idle = true;
	for (struct queue *q = queues; q < queues + n_queues; q++)
		for (count(q); q->ended < q->begun; count(q))
			usleep(100);
}

/* Beyond one for each kernel that was begun. */
static uint64_t count_twice(void)
{
	uint64_t twice = 0;

	for (struct queue *q = queues; q < queues + n_queues; q++)
		for (uint64_t i = 0; i < DEPTH; i++)
			twice += q->slots[i] - (q->begun + DEPTH - 1 - i) / DEPTH;
	return twice;
}

static void tell_progress(void)
{
	printf("progress");
	for (struct queue *q = queues; q < queues + n_queues; q++) {
		count(q);
		printf(" %u:%llu", (unsigned)(q - queues), (unsigned long long)q->ended);
	}
	printf("\n");
}

static void tell_end(void)
{
	uint64_t begun = 0, ended = 0;

	finish();
	for (struct queue *q = queues; q < queues + n_queues; q++) {
		use(q);
		check(cudaDeviceSynchronize());
		begun += q->begun;
		ended += q->ended;
	}
	printf("end %llu %llu %llu 0\n", (unsigned long long)begun, (unsigned long long)ended, (unsigned long long)count_twice());
}

static void obey(const char *order)
{
	unsigned ms = 0;

	if (!strcmp(order, "progress\n")) {
		tell_progress();
	} else if (!strcmp(order, "idle\n")) {
		finish();
		printf("idle 0\n");
	} else if (sscanf(order, "long %u", &ms) == 1) {
		finish();
		for (struct queue *q = queues; q < queues + n_queues; q++)
			begin(q, ms);
		printf("long 0\n");
	} else if (!strcmp(order, "end\n")) {
		tell_end();
		exit(0);
	} else {
		printf("what? %s", order);
	}
}

int main(int argc, char **argv)
{
	struct pollfd input = {0, POLLIN, 0};
	char order[80];

	n_queues = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
	if (n_queues < 1 || n_queues > MOST) {
		fprintf(stderr, "usage: job QUEUES, 1 to %d\n", MOST);
		return 2;
	}
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	check(cuInit(0));
	for (struct queue *q = queues; q < queues + n_queues; q++)
		create(q);
	calibrate();
	for (struct queue *q = queues; q < queues + n_queues; q++)
		warm_up(q);
	printf("ready\n");
	for (;;) {
		serve();
		if (poll(&input, 1, 1) > 0) {
			if (!fgets(order, sizeof(order), stdin))
				return 0;
			obey(order);
		}
	}
}
