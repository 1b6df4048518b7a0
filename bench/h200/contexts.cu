// SPDX-License-Identifier: MIT
/*
 * contexts N KERNELS ITERATIONS: as work does, in turns in N contexts of one process; the sum is of all.
 *
 * Prints "ready", and goes on when a line comes.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda.h>
#include <unistd.h>

#define MOST 8
#define BLOCKS 132
#define THREADS 256
#define PAUSE_US 5000

static void fail(const char *why)
{
	fprintf(stderr, "contexts: %s\n", why);
	exit(1);
}

static void check(cudaError_t error)
{
	if (error != cudaSuccess)
		fail(cudaGetErrorString(error));
}

static void check(CUresult result)
{
	if (result != CUDA_SUCCESS)
		fail("a call of the driver's failed");
}

__global__ void advance(uint64_t *state, uint32_t iterations)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x = state[i];

	for (uint32_t n = 0; n < iterations; n++)
		x = x * 6364136223846793005ull + 1442695040888963407ull + i;
	state[i] = x;
}

/* A single one is the runtime's own, as most programs have it. */
static CUcontext new_context(int is_single)
{
	CUcontext context;

	if (is_single) {
		check(cudaFree(NULL));
		check(cuCtxGetCurrent(&context));
		return context;
	}
#if CUDA_VERSION >= 13000
	check(cuCtxCreate(&context, NULL, 0, 0));
#else
	check(cuCtxCreate(&context, 0, 0));
#endif
	return context;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint32_t contexts = argc == 4 ? (uint32_t)atoi(argv[1]) : 0;
	uint32_t kernels = argc == 4 ? (uint32_t)atoi(argv[2]) : 0,
		 iterations = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
	static uint64_t kept[BLOCKS * THREADS];
	CUcontext context[MOST];
	uint64_t *state[MOST], sum = 0;

	if (!contexts || contexts > MOST || !kernels || !iterations) {
		fprintf(stderr, "usage: contexts N KERNELS ITERATIONS\n");
		return 2;
	}
	check(cuInit(0));
	for (uint32_t i = 0; i < contexts; i++) {
		context[i] = new_context(contexts == 1);
		check(cuCtxSetCurrent(context[i]));
		check(cudaMalloc(&state[i], sizeof(kept)));
		check(cudaMemset(state[i], (int)i + 1, sizeof(kept)));
	}
	puts("ready");
	fflush(stdout);
	(void)getchar(); /* a line says go */
	for (uint32_t n = 0; n < kernels; n++) {
		check(cuCtxSetCurrent(context[n % contexts]));
		advance<<<BLOCKS, THREADS>>>(state[n % contexts], iterations);
		check(cudaGetLastError());
		check(cudaDeviceSynchronize());
		printf("done %u at %.6f\n", n + 1, now());
		fflush(stdout);
		usleep(PAUSE_US);
	}
	for (uint32_t i = 0; i < contexts; i++) {
		check(cuCtxSetCurrent(context[i]));
		check(cudaMemcpy(kept, state[i], sizeof(kept), cudaMemcpyDeviceToHost));
		for (size_t k = 0; k < BLOCKS * THREADS; k++)
			sum = sum * 31 + kept[k];
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	return 0;
}
