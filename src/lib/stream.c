// SPDX-License-Identifier: MIT
/* Streams of this process: Lv1 and Lv2 by libgpreempt-level.so, where a runtime has loaded it; Lv3 by ctx. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/old_glibc.h"
#include "base/sized.h"
#include "base/time.h"
#include "level/api.h"
#include "lib/ctx.h"

#define ONLINE_FROM 10u /* priorities; as the daemon's threshold */
#define MOST_PRIORITY 15u
#define FIRST_ADDRESS 4096u /* nothing lies below */
#define TELL_NS GP_S        /* what an agent may take to tell gpreemptd of a new queue */

struct gp_stream {
	struct gp_ctx *ctx;
	struct gp_ctx none; /* in the place of one that was not given: for sentences that nobody reads */
	const struct gp_level_api *api; /* NULL: libgpreempt-level.so is not in this process */
	struct gp_level_queue *q;       /* NULL: no door has it */
	const char *door;
	uint64_t queue;              /* 0: no Lv3 */
	uint32_t levels, level;      /* now */
	uint32_t all_levels, wanted; /* where the engine takes none away */
	uint32_t priority, is_interrupted;
	uint32_t client_class, engine_level; /* that it had before */
	uint32_t is_manual;
};

static const struct gp_level_api *find_api(void)
{
	void *library = dlopen(GP_LEVEL_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	const struct gp_level_api *api = library ? dlsym(library, GP_LEVEL_API) : NULL;

	return api && api->abi == GP_LEVEL_ABI ? api : NULL;
}

static const char *level_name(uint32_t level)
{
	static const char *const names[] = { "none", "throttle", "gate", "interrupt" };

	return names[level];
}

static void name_levels(uint32_t levels, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (uint32_t i = GP_LEVEL_THROTTLE; i <= GP_LEVEL_INTERRUPT; i++) {
		int n = levels & 1u << i
				? snprintf(text + used, size - used, "%s%s", used ? ", " : "", level_name(i))
				: 0;

		used += n > 0 ? (size_t)n : 0;
	}
}

static uint32_t highest(uint32_t levels)
{
	uint32_t level = GP_LEVEL_INTERRUPT;

	while (level && !(levels & 1u << level))
		level--;
	return level;
}

/* The engine may have taken a level from it, or given it back. */
static void look_again(struct gp_stream *s)
{
	struct gp_level_state state;

	if (!s->q || s->api->state(s->q, &state) < 0)
		return;
	s->levels = state.levels | (s->all_levels & 1u << GP_LEVEL_INTERRUPT);
	s->level = highest(s->levels & ((2u << s->wanted) - 1));
}

/* What somebody can do who lacks this level. */
static void explain(const struct gp_stream *s, uint32_t level, char *text, size_t size)
{
	if (level == GP_LEVEL_INTERRUPT)
		(void)snprintf(text, size,
			       "for interrupt start the program under gpreempt run, with a gpreemptd");
	else if (s->q)
		(void)snprintf(text, size,
			       "%s's door has no other here, or not for so many streams, or GPREEMPT_LEVEL "
			       "leaves it out (LEVELS.md)",
			       s->door);
	else
		(void)snprintf(text, size, "throttle and gate need libgpreempt-level.so (LEVELS.md)");
}

static int need(struct gp_stream *s, uint32_t level)
{
	char there[64], advice[160];

	if (level > GP_LEVEL_INTERRUPT || level == GP_LEVEL_NONE)
		return gp_ctx_fail(s->ctx, -EINVAL,
				   "there is no level %" PRIu32 ": 1 is throttle, 2 gate, 3 interrupt",
				   level);
	look_again(s);
	if (s->levels & 1u << level)
		return 0;
	name_levels(s->levels, there, sizeof(there));
	explain(s, level, advice, sizeof(advice));
	return gp_ctx_fail(s->ctx, -ENOTSUP, "this stream has no %s; it has: %s; %s", level_name(level),
			   there, advice);
}

/* What the engine answers: it fails only where the queue is not there any more. */
static int tell(struct gp_stream *s, int r)
{
	return r < 0 ? gp_ctx_fail(s->ctx, r, "the stream is gone") : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

/* The queue, as the driver has it. Where an agent is in this process, gpreemptd is about to be told. */
static void find_queue(struct gp_stream *s, uint64_t ring, int is_told)
{
	const struct timespec pause = { .tv_nsec = 5 * (long)GP_MS };
	struct gp_queue_info info = { .size = sizeof(info) };
	uint64_t end = now_ns() + TELL_NS;
	uint32_t rights;
	int r;

	if (s->ctx == &s->none || !ring)
		return;
	is_told = is_told && gp_ctx_rights(s->ctx, &rights) == 0;
	do {
		r = gp_queue_find(s->ctx, 0, ring, &info);
		if (r < 0 && is_told)
			(void)nanosleep(&pause, NULL);
	} while (r < 0 && is_told && now_ns() < end);
	if (r < 0 || !info.way[0])
		return;
	s->queue = info.queue;
	s->levels |= 1u << GP_LEVEL_INTERRUPT;
	s->all_levels |= 1u << GP_LEVEL_INTERRUPT;
}

/* What a program without our door has as its stream is an hsa_queue_t: its ring comes after two numbers.
 * CUDA's default streams are small numbers. */
static uint64_t ring_of(const void *stream)
{
	struct {
		uint32_t type, features;
		uint64_t base_address;
	} queue;

	if ((uintptr_t)stream < FIRST_ADDRESS)
		return 0;
	memcpy(&queue, stream, sizeof(queue));
	return queue.base_address;
}

/* stream: NULL, the one that this thread launched to last. */
static void find_levels(struct gp_stream *s, const void *stream)
{
	struct gp_level_state state;

	s->api = find_api();
	if (s->api)
		s->q = stream ? s->api->find(stream, 0) : s->api->find_last();
	if (!s->q || s->api->state(s->q, &state) < 0) {
		find_queue(s, s->ctx == &s->none || !stream ? 0 : ring_of(stream), 0);
		return;
	}
	s->levels = state.levels;
	s->all_levels = state.door_levels;
	s->door = state.door;
	s->client_class = state.client_class;
	s->engine_level = state.wanted;
	find_queue(s, state.ring, 1);
}

/* What the engine does by itself is done at a level of its own. */
static int tell_engine(struct gp_stream *s)
{
	uint32_t level = s->wanted != GP_LEVEL_INTERRUPT ? s->wanted
			 : s->is_manual                  ? GP_LEVEL_NONE
					: highest(s->all_levels & ~(1u << GP_LEVEL_INTERRUPT));

	return s->q ? s->api->set(s->q, level) : 0;
}

#define NOBODY "nobody here can hold this stream: "

/* By how far the library for levels has come: not into this process; not through a door; not to this stream.
 */
static int refuse(struct gp_stream *s, int is_last)
{
	char doors[200] = "";

	if (!s->api)
		return gp_ctx_fail(
			s->ctx, -ENODEV,
			NOBODY
			"for throttle and gate start the program with "
			"HSA_TOOLS_LIB=libgpreempt-level.so (ROCm), CUDA_INJECTION64_PATH=... (CUDA) or "
			"OPENCL_LAYERS=..., for interrupt under gpreempt run with a gpreemptd");
	s->api->doors(doors, sizeof(doors));
	if (!*doors)
		return gp_ctx_fail(
			s->ctx, -ENODEV,
			NOBODY "libgpreempt-level.so is loaded, but by no runtime: name it in "
			       "HSA_TOOLS_LIB, CUDA_INJECTION64_PATH or OPENCL_LAYERS, not in LD_PRELOAD");
	for (char *at = doors; (at = strchr(at, '\n'));) /* one line for each */
		*at = at[1] ? ';' : '\0';
	if (is_last)
		return gp_ctx_fail(
			s->ctx, -ENODEV,
			NOBODY "libgpreempt-level.so is loaded (%s), but this thread has launched nothing "
			       "through a door, or its queue has gone",
			doors);
	return gp_ctx_fail(
		s->ctx, -ENODEV,
		NOBODY "libgpreempt-level.so is loaded (%s) and does not know it: a door that is open knows "
		       "hsa_queue_t *, CUstream, and cl_command_queue in order (LEVELS.md)",
		doors);
}

static int adopt(struct gp_stream *s, const struct gp_stream_opts *o)
{
	int r;

	if (!s->levels)
		return refuse(s, (o->flags & GP_STREAM_LAST) != 0);
	s->priority = o->priority;
	s->is_manual = (o->flags & GP_STREAM_MANUAL) != 0;
	s->level = highest(s->levels);
	s->wanted = highest(s->all_levels);
	r = o->level ? gp_stream_set_level(s, o->level) : tell_engine(s);
	if (r == 0 && s->q)
		r = s->api->set_role(s->q, o->priority >= ONLINE_FROM ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE,
				     s->is_manual);
	return r;
}

static int check(struct gp_stream *s, const struct gp_stream_opts *opts, struct gp_stream_opts *ret)
{
	int r = opts ? gp_sized_copy(ret, sizeof(*ret), opts, opts->size) : 0;

	if (r < 0)
		return gp_ctx_fail(s->ctx, r, "options of another size than this library knows");
	if (ret->flags & ~(GP_STREAM_MANUAL | GP_STREAM_LAST) || ret->priority > MOST_PRIORITY)
		return gp_ctx_fail(s->ctx, -EINVAL,
				   "a stream has a priority of 0 to 15, and no flags but GP_STREAM_MANUAL "
				   "and GP_STREAM_LAST");
	return 0;
}

static int check_stream(struct gp_stream *s, const void *stream, uint64_t flags)
{
	if (!stream && !(flags & GP_STREAM_LAST))
		return gp_ctx_fail(s->ctx, -EINVAL,
				   "NULL is no stream; CUDA's default one is CU_STREAM_LEGACY");
	if (stream && flags & GP_STREAM_LAST)
		return gp_ctx_fail(s->ctx, -EINVAL, "with GP_STREAM_LAST the stream is NULL");
	return 0;
}

int gp_stream_open(struct gp_ctx *ctx, const void *stream, const struct gp_stream_opts *opts,
		   struct gp_stream **ret_stream)
{
	struct gp_stream_opts o = { .size = sizeof(o) };
	struct gp_stream *s;
	int r;

	if (!ret_stream)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->ctx = ctx ? ctx : &s->none;
	r = check(s, opts, &o);
	if (r == 0)
		r = check_stream(s, stream, o.flags);
	if (r == 0) {
		find_levels(s, stream);
		r = adopt(s, &o);
	}
	if (r < 0) {
		(void)gp_stream_close(s);
		return r;
	}
	*ret_stream = s;
	return 0;
}

struct gp_stream *gp_stream_close(struct gp_stream *s)
{
	if (!s)
		return NULL;
	if (s->is_interrupted)
		(void)gp_stream_restore(s); /* else the context's end does it */
	if (s->q) {
		(void)s->api->let_go(s->q, GP_HOLDER_PROGRAM); /* it may have gone */
		(void)s->api->set(s->q, s->engine_level);
		(void)s->api->set_depth(s->q, 0);
		(void)s->api->set_role(s->q, s->client_class, 0);
		s->api->put(s->q);
	}
	free(s);
	return NULL;
}

int gp_stream_query(struct gp_stream *s, struct gp_stream_info *ret_info)
{
	struct gp_stream_info info;
	struct gp_level_state state = { .door = "" };

	if (!s || !ret_info || !ret_info->size)
		return -EINVAL;
	if (s->q && s->api->state(s->q, &state) < 0)
		return tell(s, -ENODEV);
	look_again(s);
	info = (struct gp_stream_info){ .size = ret_info->size,
					.levels = s->levels,
					.level = s->level,
					.priority = s->priority,
					.held = state.held || s->is_interrupted,
					.begun = state.begun,
					.ended = state.ended,
					.length_ns = state.length_ns,
					.in_flight = state.depth,
					.queue = s->queue };
	(void)snprintf(info.door, sizeof(info.door), "%s", state.door);
	gp_sized_fill(ret_info, ret_info->size, &info, sizeof(info));
	return 0;
}

static int is_held(struct gp_stream *s)
{
	struct gp_level_state state;

	return s->is_interrupted ||
	       (s->q && s->api->state(s->q, &state) == 0 && state.held & 1u << GP_HOLDER_PROGRAM);
}

int gp_stream_set_level(struct gp_stream *s, uint32_t level)
{
	int r = s ? need(s, level) : -EINVAL;
	uint32_t before;

	if (r < 0)
		return r;
	if (level != s->level && is_held(s))
		return gp_ctx_fail(s->ctx, -EBUSY, "the stream is suspended at level %s: resume it first",
				   level_name(s->is_interrupted ? GP_LEVEL_INTERRUPT : s->level));
	before = s->wanted;
	s->level = s->wanted = level;
	r = tell_engine(s);
	if (r < 0)
		s->level = s->wanted = before;
	return tell(s, r);
}

static int hold(struct gp_stream *s, uint32_t level)
{
	int r = s ? need(s, level) : -EINVAL;

	if (r == 0 && level != s->level)
		r = gp_stream_set_level(s, level);
	if (r < 0)
		return r;
	return tell(s, s->api->hold(s->q, GP_HOLDER_PROGRAM, 0));
}

/* Also where that level was taken from it meanwhile. */
static int let_go(struct gp_stream *s, uint32_t level)
{
	int r = !s ? -EINVAL : s->q && (s->all_levels & 1u << level || is_held(s)) ? 0 : need(s, level);

	return r < 0 ? r : tell(s, s->api->let_go(s->q, GP_HOLDER_PROGRAM));
}

int gp_stream_deactivate(struct gp_stream *s)
{
	return hold(s, GP_LEVEL_GATE);
}

int gp_stream_reactivate(struct gp_stream *s)
{
	return let_go(s, GP_LEVEL_GATE);
}

int gp_stream_interrupt(struct gp_stream *s)
{
	int r = s ? need(s, GP_LEVEL_INTERRUPT) : -EINVAL;

	if (r == 0)
		r = gp_queue_suspend(s->ctx, &s->queue, 1, NULL, NULL);
	if (r == 0)
		s->is_interrupted = 1;
	return r;
}

int gp_stream_restore(struct gp_stream *s)
{
	int r = s ? need(s, GP_LEVEL_INTERRUPT) : -EINVAL;

	if (r == 0 && s->is_interrupted)
		r = gp_queue_resume(s->ctx, &s->queue, 1, NULL);
	if (r == 0)
		s->is_interrupted = 0;
	return r;
}

int gp_stream_suspend(struct gp_stream *s)
{
	if (!s)
		return -EINVAL;
	look_again(s);
	return s->level == GP_LEVEL_INTERRUPT ? gp_stream_interrupt(s) : hold(s, s->level);
}

int gp_stream_resume(struct gp_stream *s)
{
	if (!s)
		return -EINVAL;
	return s->level == GP_LEVEL_INTERRUPT ? gp_stream_restore(s) : let_go(s, s->level);
}

int gp_stream_nlaunch(struct gp_stream *s, uint32_t n)
{
	int r = s ? need(s, GP_LEVEL_THROTTLE) : -EINVAL;

	if (r == 0)
		r = gp_stream_set_level(s, GP_LEVEL_THROTTLE);
	return r < 0 ? r : tell(s, s->api->set_depth(s->q, n));
}

int gp_stream_sync(struct gp_stream *s, uint64_t timeout_ns)
{
	int r = s ? need(s, GP_LEVEL_THROTTLE) : -EINVAL; /* whoever bounds launches counts them */

	if (r < 0)
		return r;
	r = s->api->sync(s->q, timeout_ns);
	if (r == -ETIMEDOUT)
		return gp_ctx_fail(s->ctx, r, "launches have not ended in time");
	return tell(s, r);
}
