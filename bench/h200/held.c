// SPDX-License-Identifier: MIT
/* A thread that suspends the legacy stream of the process it is in and resumes it, over and over: for
 * held.py. No thread of Python's could: whoever waits at the throttle may have Python's lock. */
#include <gpreempt/gpreempt.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define LEGACY ((const void *)1) /* CU_STREAM_LEGACY */

static uint32_t level;
static volatile uint32_t is_over, held;
static pthread_t thread;

static void rest(long us)
{
	const struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

static void *hold(void *unused)
{
	const struct gp_stream_opts opts = {
		.size = sizeof(opts), .priority = 2, .level = level, .flags = GP_STREAM_MANUAL
	};
	struct gp_stream *stream = NULL;

	(void)unused;
	while (!is_over &&
	       gp_stream_open(NULL, LEGACY, &opts, &stream) < 0) /* before its first launch it is not there */
		rest(1000);
	for (uint32_t i = 0; !is_over; i++) {
		held += gp_stream_suspend(stream) == 0;
		rest(200 + i * 7 % 1300);
		gp_stream_resume(stream);
		rest(500 + i * 11 % 1500);
	}
	gp_stream_close(stream);
	return NULL;
}

int held_start(uint32_t at_level)
{
	level = at_level;
	return pthread_create(&thread, NULL, hold, NULL);
}

uint32_t held_stop(void)
{
	is_over = 1;
	pthread_join(thread, NULL);
	return held;
}
