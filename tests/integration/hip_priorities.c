// SPDX-License-Identifier: MIT
/*
 * Two streams of HIP's, one with the lowest and one with the highest priority, work beside each other: HIP
 * gives their queues these priorities in ROCr, whose door makes the one offline and the other online.  Start
 * it with HSA_TOOLS_LIB=libgpreempt-level.so.  Where there is no HIP to run it is compiled, against Debian's
 * headers (libamdhip64-dev 5.2.3).
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES (16u << 20)
#define TIMES 100

static void check(hipError_t r, const char *what)
{
	if (r == hipSuccess)
		return;
	fprintf(stderr, "hip_priorities: %s: %s\n", what, hipGetErrorString(r));
	exit(1);
}

#define CHECK(call) check(call, #call)

struct line {
	hipStream_t stream;
	void *memory;
	int priority;
};

/* What came out is what HIP made of the wish: class_of() of the door sees no more. */
static void make(struct line *l, int wanted)
{
	CHECK(hipStreamCreateWithPriority(&l->stream, hipStreamNonBlocking, wanted));
	CHECK(hipStreamGetPriority(l->stream, &l->priority));
	CHECK(hipMalloc(&l->memory, BYTES));
}

static int is_filled(const struct line *l, int value)
{
	unsigned char *copy = malloc(BYTES);
	int holds = copy != NULL;

	CHECK(hipMemcpy(copy, l->memory, BYTES, hipMemcpyDeviceToHost));
	for (size_t i = 0; holds && i < BYTES; i++)
		holds = copy[i] == value;
	free(copy);
	return holds;
}

int main(void)
{
	struct line low = { 0 }, high = { 0 };
	int least = 0, greatest = 0;

	CHECK(hipInit(0));
	CHECK(hipDeviceGetStreamPriorityRange(&least, &greatest));
	make(&low, least);
	make(&high, greatest);
	for (int i = 1; i <= TIMES; i++) {
		CHECK(hipMemsetAsync(low.memory, i, BYTES, low.stream));
		CHECK(hipMemsetAsync(high.memory, i, BYTES, high.stream));
	}
	CHECK(hipStreamSynchronize(high.stream));
	CHECK(hipStreamSynchronize(low.stream));
	printf("low %d high %d\n", low.priority, high.priority);
	if (low.priority <= high.priority || !is_filled(&low, TIMES) || !is_filled(&high, TIMES)) {
		fprintf(stderr, "hip_priorities: what came out is not what was put in\n");
		return 1;
	}
	CHECK(hipStreamDestroy(low.stream));
	CHECK(hipStreamDestroy(high.stream));
	return 0;
}
