// SPDX-License-Identifier: MIT
/*
 * What a program does with gp_stream_*() while a context of CUDA's has more streams than gates may be in, and
 * when it has fewer again: whoever came, asked or went meanwhile has not chosen to be without.
 */
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_double.h"

#define MOST_GATED 24

static void same(int found, int expected, const char *what)
{
	if (found == expected)
		return;
	printf("%s: %d and not %d\n", what, found, expected);
	exit(1);
}

#define SAME(found, expected) same((int)(found), (int)(expected), #found)

static int launch(gp_cu_stream stream)
{
	uint64_t nothing = 0;
	void *args[] = { &nothing, &nothing };

	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

static struct gp_stream_info info_of(struct gp_stream *s)
{
	struct gp_stream_info info = { .size = sizeof(info) };

	SAME(gp_stream_query(s, &info), 0);
	return info;
}

static struct gp_stream *open_stream(gp_cu_stream stream, uint64_t flags)
{
	struct gp_stream_opts opts = { .size = sizeof(opts), .flags = flags };
	struct gp_stream *s = NULL;

	SAME(gp_stream_open(NULL, stream, &opts, &s), 0);
	return s;
}

int main(void)
{
	gp_cu_stream all[MOST_GATED + 1];
	struct gp_stream *early, *late, *left;

	SAME(cuInit(0), 0);
	for (int i = 0; i <= MOST_GATED; i++)
		SAME(cuStreamCreate(&all[i], GP_CU_NON_BLOCKING), 0);
	early = open_stream(all[0], GP_STREAM_MANUAL);
	left = open_stream(all[2], GP_STREAM_MANUAL);
	SAME(gp_stream_set_level(left, GP_LEVEL_THROTTLE), 0);
	SAME(info_of(early).level, GP_LEVEL_GATE);
	SAME(launch(all[0]), 0);
	SAME(gp_stream_deactivate(early), 0);
	for (int i = 1; i <= MOST_GATED; i++)
		SAME(launch(all[i]), 0);
	SAME(info_of(early).level, GP_LEVEL_THROTTLE);
	SAME(info_of(early).held, 1);
	SAME(gp_stream_reactivate(early), 0);
	SAME(info_of(early).held, 0);
	SAME(gp_stream_reactivate(early), 0); /* nothing is left to let go */
	SAME(gp_stream_deactivate(early), -ENOTSUP);
	SAME(gp_stream_set_level(early, GP_LEVEL_GATE), -ENOTSUP);
	SAME(gp_stream_suspend(early), 0);
	late = open_stream(all[1], GP_STREAM_MANUAL);
	SAME(info_of(late).level, GP_LEVEL_THROTTLE);
	SAME(gp_stream_close(left) != NULL, 0);
	SAME(cuStreamDestroy_v2(all[MOST_GATED]), 0);
	SAME(info_of(early).level, GP_LEVEL_GATE);
	SAME(gp_stream_deactivate(early), 0); /* it is held there */
	SAME(gp_stream_resume(early), 0);
	SAME(info_of(early).held, 0);
	SAME(info_of(late).level, GP_LEVEL_GATE);
	SAME(gp_stream_close(early) || gp_stream_close(late), 0);
	for (int i = 0; i < 3; i++) {
		struct gp_stream *s = open_stream(all[i], 0);
		size_t before = 0;

		while (cuda_double_text(all[i])[before])
			before++;
		SAME(info_of(s).level, GP_LEVEL_GATE);
		SAME(launch(all[i]), 0);
		SAME(cuda_double_text(all[i])[before], 'W');
		SAME(gp_stream_close(s) != NULL, 0);
		SAME(cuStreamSynchronize(all[i]), 0);
	}
	return 0;
}
