// SPDX-License-Identifier: MIT
/*
 * work KERNELS ITERATIONS [DEPTH [KIND]]: offline work on a CUDA GPU whose result tells whether any of it was lost or done twice.
 *
 * KIND: spin (unless another is named), whose threads do nothing but count; memory, where each iteration reads and writes
 * more than caches hold; gemm, where it is a product of matrices by tiles in shared memory.  Every kernel goes on from what
 * the one before left, so the sum in the end depends on each of them having run exactly once.  Prints "done N at SECONDS" as
 * kernels end, at most every 5 ms, and "sum X" in the end.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define CHECK(call) check(call, #call)

static void check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "work: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

#define THREADS 256
#define MEMORY (1u << 25) /* words of 8 bytes */
#define SIDE 2048u        /* of a matrix */
#define TILE 16u

static_assert(THREADS == TILE * TILE, "a thread for each element of a tile");

__device__ uint64_t advanced(uint64_t x, uint32_t i)
{
	return x * 6364136223846793005ull + 1442695040888963407ull + i;
}

__global__ void spin(uint64_t *state, uint32_t iterations)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t x = state[i];

	for (uint32_t n = 0; n < iterations; n++)
		x = advanced(x, i);
	state[i] = x;
}

/* Each thread has words of its own, so that no order among threads matters. */
__global__ void stream(uint64_t *state, uint32_t iterations)
{
	uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;

	for (uint32_t n = 0; n < iterations; n++)
		for (uint32_t i = first; i < MEMORY; i += step)
			state[i] = advanced(state[i], i);
}

/* Two matrices of float, one after the other; each element is added up in one order. What is kept is below 1. */
__global__ void multiply(const float *from, float *to, uint32_t iterations)
{
	__shared__ float a[TILE][TILE], b[TILE][TILE];
	uint32_t x = threadIdx.x % TILE, y = threadIdx.x / TILE;
	uint32_t column = blockIdx.x % (SIDE / TILE) * TILE + x, line = blockIdx.x / (SIDE / TILE) * TILE + y;
	float sum = 0;

	for (uint32_t n = 0; n < iterations; n++) {
		for (uint32_t k = 0; k < SIDE; k += TILE) {
			a[y][x] = from[line * SIDE + k + x];
			b[y][x] = from[(k + y) * SIDE + column];
			__syncthreads();
			for (uint32_t i = 0; i < TILE; i++)
				sum = fmaf(a[y][i], b[i][x], sum);
			__syncthreads();
		}
	}
	to[line * SIDE + column] = sum - floorf(sum);
}

__global__ void fill(uint64_t *state, uint32_t n)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		state[i] = advanced(0x0101010101010101ull, i);
}

/* As floats below 1. */
__global__ void fill_matrix(float *matrix)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	matrix[i] = (float)(advanced(i, i) >> 40) / (float)(1u << 24);
}

static uint32_t n_blocks, iterations;

static void launch_spin(uint64_t *state, uint32_t)
{
	spin<<<n_blocks, THREADS>>>(state, iterations);
}

static void launch_stream(uint64_t *state, uint32_t)
{
	stream<<<n_blocks, THREADS>>>(state, iterations);
}

static void launch_multiply(uint64_t *state, uint32_t number)
{
	float *matrices[2] = {(float *)state, (float *)state + SIDE * SIDE};

	multiply<<<SIDE / TILE * (SIDE / TILE), THREADS>>>(matrices[number % 2], matrices[(number + 1) % 2], iterations);
}

static const struct kind {
	const char *name;
	size_t words; /* of 8 bytes; 0: one for each thread */
	void (*launch)(uint64_t *state, uint32_t number);
} kinds[] = {{"spin", 0, launch_spin}, {"memory", MEMORY, launch_stream}, {"gemm", SIDE * SIDE, launch_multiply}};

static const struct kind *kind_of(const char *name)
{
	for (const struct kind &one : kinds)
		if (!strcmp(one.name, name))
			return &one;
	return NULL;
}

static uint64_t *new_state(const struct kind *kind, size_t n)
{
	uint64_t *state;

	CHECK(cudaMalloc(&state, n * sizeof(*state)));
	if (kind->launch == launch_spin)
		CHECK(cudaMemset(state, 1, n * sizeof(*state)));
	else if (kind->launch == launch_multiply)
		fill_matrix<<<SIDE * SIDE / THREADS, THREADS>>>((float *)state);
	else
		fill<<<(uint32_t)(n / THREADS), THREADS>>>(state, (uint32_t)n);
	CHECK(cudaDeviceSynchronize());
	return state;
}

static void print_sum(const uint64_t *state, size_t n)
{
	uint64_t *kept = (uint64_t *)malloc(n * sizeof(*kept)), sum = 0;

	CHECK(cudaMemcpy(kept, state, n * sizeof(*kept), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + kept[i];
	printf("sum %016llx\n", (unsigned long long)sum);
	free(kept);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void tell(uint32_t done, bool is_last)
{
	static double said;

	if (now() < said + 0.005 && !is_last)
		return;
	said = now();
	printf("done %u at %.6f\n", done, said);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint32_t kernels = argc > 2 ? (uint32_t)atoi(argv[1]) : 0, depth = argc > 3 ? (uint32_t)atoi(argv[3]) : 4;
	const struct kind *kind = kind_of(argc > 4 ? argv[4] : "spin");
	cudaDeviceProp gpu;
	cudaEvent_t ended[64];
	uint64_t *state;
	size_t n;

	iterations = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	if (!kernels || !iterations || depth < 1 || depth > 64 || !kind || argc > 5) {
		fprintf(stderr, "usage: work KERNELS ITERATIONS [DEPTH [spin | memory | gemm]]\n");
		return 2;
	}
	CHECK(cudaGetDeviceProperties(&gpu, 0));
	n_blocks = (uint32_t)gpu.multiProcessorCount * 8;
	n = kind->words ? kind->words : (size_t)n_blocks * THREADS;
	state = new_state(kind, n);
	for (uint32_t i = 0; i < depth; i++)
		CHECK(cudaEventCreateWithFlags(&ended[i], cudaEventDisableTiming | cudaEventBlockingSync));
	for (uint32_t i = 0; i < kernels + depth; i++) {
		if (i >= depth) {
			CHECK(cudaEventSynchronize(ended[i % depth]));
			tell(i - depth + 1, i == kernels + depth - 1);
		}
		if (i < kernels) {
			kind->launch(state, i);
			CHECK(cudaGetLastError());
			CHECK(cudaEventRecord(ended[i % depth]));
		}
	}
	print_sum(state, n);
	return 0;
}
