// SPDX-License-Identifier: MIT
/*
 * work KERNELS ITERATIONS [DEPTH]: offline work on a CUDA GPU whose result tells whether any of it was lost or done twice.
 *
 * Every kernel advances a generator in each of the threads that fill the GPU, so the sum in the end depends on each of
 * them having run exactly once.  Prints "done N at SECONDS" as kernels end, at most every 5 ms, and "sum X" in the end.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#define CHECK(call) check(call, #call)

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "work: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

__global__ void advance(uint64_t *state, uint32_t iterations)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x = state[i];

	for (uint32_t n = 0; n < iterations; n++)
		x = x * 6364136223846793005ull + 1442695040888963407ull + i;
	state[i] = x;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint32_t kernels = argc > 2 ? (uint32_t)atoi(argv[1]) : 0, iterations = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	uint32_t depth = argc > 3 ? (uint32_t)atoi(argv[3]) : 4;
	cudaDeviceProp gpu;
	cudaEvent_t ended[64];
	uint64_t *state, *kept, sum = 0;
	double said = 0;

	if (!kernels || !iterations || depth < 1 || depth > 64) {
		fprintf(stderr, "usage: work KERNELS ITERATIONS [DEPTH]\n");
		return 2;
	}
	CHECK(cudaGetDeviceProperties(&gpu, 0));
	uint32_t blocks = (uint32_t)gpu.multiProcessorCount * 8, threads = 256;
	size_t n = (size_t)blocks * threads;
	CHECK(cudaMalloc(&state, n * sizeof(*state)));
	CHECK(cudaMemset(state, 1, n * sizeof(*state)));
	for (uint32_t i = 0; i < depth; i++)
		CHECK(cudaEventCreateWithFlags(&ended[i], cudaEventDisableTiming | cudaEventBlockingSync));
	for (uint32_t i = 0; i < kernels + depth; i++) {
		if (i >= depth) {
			CHECK(cudaEventSynchronize(ended[i % depth]));
			if (now() > said + 0.005 || i == kernels + depth - 1) {
				said = now();
				printf("done %u at %.6f\n", i - depth + 1, said);
				fflush(stdout);
			}
		}
		if (i < kernels) {
			advance<<<blocks, threads>>>(state, iterations);
			CHECK(cudaGetLastError());
			CHECK(cudaEventRecord(ended[i % depth]));
		}
	}
	kept = (uint64_t *)malloc(n * sizeof(*kept));
	CHECK(cudaMemcpy(kept, state, n * sizeof(*kept), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + kept[i];
	printf("sum %016llx\n", (unsigned long long)sum);
	return 0;
}
