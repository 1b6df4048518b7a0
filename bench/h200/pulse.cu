// SPDX-License-Identifier: MIT
/*
 * pulse LIBRARY: short requests on a CUDA GPU without end, each with a hint around it, by libgpreempt.
 *
 * Prints "done N at SECONDS" for each.  Two are open at a time now and then, so that offline is parked.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <unistd.h>

static void check(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "pulse: %s\n", cudaGetErrorString(error));
	exit(1);
}

__global__ void spin(uint64_t *state, uint32_t iterations)
{
	uint64_t x = threadIdx.x;

	for (uint32_t n = 0; n < iterations; n++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	state[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef int open_fn(const void *opts, void **ctx);
typedef int hint_fn(void *ctx, const void *hint);

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL, *ctx = NULL;
	open_fn *open_it = library ? (open_fn *)dlsym(library, "gp_ctx_open") : NULL;
	hint_fn *begin = library ? (hint_fn *)dlsym(library, "gp_hint_begin") : NULL;
	hint_fn *end = library ? (hint_fn *)dlsym(library, "gp_hint_end") : NULL;
	uint64_t *state;

	if (!open_it || !begin || !end) {
		fprintf(stderr, "usage: pulse LIBRARY\n");
		return 2;
	}
	check(cudaMalloc(&state, 132 * 256 * sizeof(*state)));
	for (unsigned long n = 1;; n++) {
		int two = n % 4 == 0;

		if (!ctx && open_it(NULL, &ctx) < 0)
			ctx = NULL; /* there is no gpreemptd now */
		for (int i = 0; ctx && i <= two; i++)
			(void)begin(ctx, NULL);
		for (int i = 0; i <= two; i++) {
			spin<<<132, 256>>>(state, 20000);
			check(cudaGetLastError());
			check(cudaDeviceSynchronize());
			if (ctx)
				(void)end(ctx, NULL);
		}
		printf("done %lu at %.6f\n", n, now());
		fflush(stdout);
		usleep((useconds_t)(500 + n * 7919 % 3000));
	}
}
