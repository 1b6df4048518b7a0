// SPDX-License-Identifier: MIT
/*
 * kernels NS: kernels of that length on a CUDA GPU, one after the other without end; 0: one that never ends.
 *
 * A kernel fills the GPU and counts what it does, not the time: one that was taken off the GPU still has the rest to do.
 * Prints "ready" when the first one runs.  Ends with its standard input.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

#define DEPTH 4
#define ROUND 1000000u

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "kernels: %s\n", cudaGetErrorString(error));
	exit(1);
}

/* iterations of 0: until told. */
__global__ void work(uint64_t *state, uint32_t iterations, volatile uint32_t *is_over)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x = state[i];

	do {
		for (uint32_t n = 0; n < (iterations ? iterations : ROUND); n++)
			x = x * 6364136223846793005ull + 1442695040888963407ull + i;
	} while (!iterations && !*is_over);
	state[i] = x;
}

static volatile uint32_t *is_over;

static void wait_for_end(void)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
	*is_over = 1;
}

int main(int argc, char **argv)
{
	uint64_t ns = argc == 2 ? strtoull(argv[1], NULL, 10) : 0, *state;
	uint32_t blocks, iterations = 0;
	cudaEvent_t begin, end, done[DEPTH];
	cudaDeviceProp gpu;
	float ms = 0;

	check(cudaGetDeviceProperties(&gpu, 0));
	blocks = (uint32_t)gpu.multiProcessorCount * 8;
	check(cudaMalloc(&state, blocks * 256 * sizeof(*state)));
	check(cudaHostAlloc((void **)&is_over, sizeof(*is_over), cudaHostAllocMapped));
	*is_over = 0;
	check(cudaEventCreate(&begin));
	check(cudaEventCreate(&end));
	for (int i = 0; i < 3; i++) { /* the last one counts: clocks are up by then */
		check(cudaEventRecord(begin));
		work<<<blocks, 256>>>(state, ROUND, is_over);
		check(cudaEventRecord(end));
		check(cudaEventSynchronize(end));
		check(cudaEventElapsedTime(&ms, begin, end));
	}
	if (ns)
		iterations = (uint32_t)((double)ns / (ms * 1e6) * ROUND);
	for (int i = 0; i < DEPTH; i++)
		check(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming | cudaEventBlockingSync));
	std::thread(wait_for_end).detach();
	for (uint64_t n = 0; !*is_over; n++) {
		check(cudaEventSynchronize(done[n % DEPTH]));
		work<<<blocks, 256>>>(state, iterations, is_over);
		check(cudaEventRecord(done[n % DEPTH]));
		if (n == 0) {
			puts("ready");
			fflush(stdout);
		}
	}
	check(cudaDeviceSynchronize());
	return 0;
}
