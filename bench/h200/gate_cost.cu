// SPDX-License-Identifier: MIT
/*
 * gate_cost: what stands between two kernels of 0.1 ms of one stream, and what it takes: nothing, a count behind
 * each, a gate before each, both as CUDA's door has them (src/level/cuda.c), and what else there might be.
 *
 * The words that are read and written lie in the host's memory, where whoever opens a gate calls nobody, or in
 * the device's.  A line for each: us for a kernel, the least of seven chains of 400, and what it is above nothing.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <ctime>

#define CHECK(call) check((int)(call), #call)
#define KERNELS 400
#define ROUNDS 7
#define LENGTH_US 100

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "gate_cost: %s: error %d\n", what, error);
	exit(1);
}

__global__ void spin(long long cycles)
{
	for (long long begin = clock64(); clock64() - begin < cycles;)
		;
}

__global__ void count_and_wait(volatile unsigned *gate, volatile unsigned *count, unsigned n)
{
	*count = n;
	while (!*gate)
		;
}

/* Two words, of which the first is an open gate. */
static CUdeviceptr host, device;
static cudaStream_t stream;
static cudaEvent_t ended;

static void wait(CUdeviceptr words)
{
	CHECK(cuStreamWaitValue32(stream, words, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void count(CUdeviceptr words, unsigned n)
{
	CHECK(cuStreamWriteValue32(stream, words + 64, n, 0));
}

static void count_and_wait_at_once(CUdeviceptr words, unsigned n)
{
	CUstreamBatchMemOpParams two[2] = {};

	two[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	two[0].writeValue.address = words + 64;
	two[0].writeValue.value = n;
	two[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	two[1].waitValue.address = words;
	two[1].waitValue.value = 1;
	two[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	CHECK(cuStreamBatchMemOp(stream, 2, two, 0));
}

static void by_kernel(CUdeviceptr words, unsigned n)
{
	count_and_wait<<<1, 1, 0, stream>>>((unsigned *)words, (unsigned *)(words + 64), n);
}

static void nothing(unsigned) {}
static void wait_host(unsigned) { wait(host); }
static void wait_device(unsigned) { wait(device); }
static void count_host(unsigned n) { count(host, n); }
static void record(unsigned) { CHECK(cudaEventRecord(ended, stream)); }
static void both_host(unsigned n) { count_and_wait_at_once(host, n); }
static void both_device(unsigned n) { count_and_wait_at_once(device, n); }
static void kernel_host(unsigned n) { by_kernel(host, n); }
static void kernel_device(unsigned n) { by_kernel(device, n); }

static const struct kind {
	const char *name;
	void (*before)(unsigned n), (*after)(unsigned n);
} kinds[] = {
	{"nothing", nothing, nothing},
	{"a count, in the host's memory: as at the throttle", nothing, count_host},
	{"a gate and a count: as at the gate", wait_host, count_host},
	{"a gate alone", wait_host, nothing},
	{"a gate alone, in the device's memory", wait_device, nothing},
	{"a count and a gate in one call", both_host, nothing},
	{"the same in the device's memory", both_device, nothing},
	{"an event", nothing, record},
	{"a kernel that counts and waits", kernel_host, nothing},
	{"the same in the device's memory", kernel_device, nothing},
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double chain(size_t kind, long long cycles)
{
	double begin = now_us();

	for (unsigned n = 0; n < KERNELS; n++) {
		kinds[kind].before(n);
		spin<<<132, 256, 0, stream>>>(cycles);
		kinds[kind].after(n);
	}
	CHECK(cudaStreamSynchronize(stream));
	return (now_us() - begin) / KERNELS;
}

static void make_words(void)
{
	unsigned *words, open = 1;
	void *at;

	CHECK(cudaHostAlloc(&words, 128, cudaHostAllocMapped));
	words[0] = open;
	CHECK(cudaHostGetDevicePointer(&at, words, 0));
	host = (CUdeviceptr)at;
	CHECK(cudaMalloc(&at, 128));
	CHECK(cudaMemcpy(at, &open, sizeof(open), cudaMemcpyHostToDevice));
	device = (CUdeviceptr)at;
}

int main(void)
{
	const size_t n = sizeof(kinds) / sizeof(struct kind);
	double least[sizeof(kinds) / sizeof(struct kind)];
	long long cycles = 200000;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming));
	make_words();
	chain(0, cycles); /* clocks go up */
	cycles = (long long)((double)cycles * LENGTH_US / chain(0, cycles));
	std::fill(least, least + n, 1e9);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n; i++)
			least[i] = std::min(least[i], chain(i, cycles));
	for (size_t i = 0; i < n; i++)
		printf("%-50s %8.2f us  +%.2f\n", kinds[i].name, least[i], least[i] - least[0]);
	return 0;
}
