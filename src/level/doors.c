// SPDX-License-Identifier: MIT
#include "level/doors.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/old_glibc.h"
#include "base/units.h"
#include "level/api.h"
#include "level/gates.h"
#include "level/internal.h"
#include "wire/environment.h"

static const char *const names[GP_DOORS] = { "rocr", "cuda", "opencl" };

static struct {
	uint32_t is_known;
	char why[256]; /* empty: it is open */
} doors[GP_DOORS];

static gp_agent_ring_fn *agent_ring;
static gp_agent_rang_fn *agent_rang;
static gp_agent_queues_fn *agent_queues;

static const char *wanted_level(void)
{
	const char *word = getenv("GPREEMPT_LEVEL");

	return word ? word : "";
}

int gp_doors_are_off(void)
{
	return !strcmp(wanted_level(), "off");
}

uint32_t gp_doors_levels(uint32_t levels)
{
	return strcmp(wanted_level(), "throttle") ? levels : levels & 1u << GP_LEVEL_THROTTLE;
}

void gp_doors_set_wait(void)
{
	const char *text = getenv("GPREEMPT_LEVEL_WAIT");
	uint64_t ns;

	if (!text || gp_time_parse(text, &ns) < 0 || ns < GP_LEVEL_LEAST_WAIT_NS ||
	    ns > GP_LEVEL_MOST_WAIT_NS)
		ns = GP_LEVEL_WAIT_NS;
	__atomic_store_n(&gp_engine.wait_ns, ns, __ATOMIC_RELAXED);
}

uint32_t gp_doors_class(void)
{
	struct gp_claim who;

	gp_environment_claim(getenv, &who);
	return who.seen;
}

static void tell_doors(char *text, size_t size)
{
	size_t used = 0;
	int n;

	*text = '\0';
	gp_engine_lock();
	for (uint32_t i = 0; i < GP_DOORS && used < size; i++) {
		if (!doors[i].is_known)
			continue;
		n = snprintf(text + used, size - used, "%s: %s%s\n", names[i],
			     doors[i].why[0] ? "shut: " : "open", doors[i].why);
		used += n > 0 ? (size_t)n : 0;
	}
	gp_engine_unlock();
}

/* gpreempt doctor has asked, by the number of a descriptor. */
static void report(void)
{
	const char *number = secure_getenv("GPREEMPT_LEVEL_REPORT");
	char text[1024];

	if (!number || !*number)
		return;
	tell_doors(text, sizeof(text));
	(void)!write(atoi(number), text, strlen(text));
}

void gp_doors_say(uint32_t door, const char *why)
{
	gp_engine_lock();
	doors[door].is_known = 1;
	(void)snprintf(doors[door].why, sizeof(doors[door].why), "%s", why ? why : "");
	gp_engine_unlock();
	report();
}

uint64_t gp_doors_ring(void)
{
	return agent_ring ? agent_ring() : 0;
}

void gp_doors_rang(void)
{
	if (agent_rang)
		agent_rang();
}

int gp_doors_agent_has_queues(void)
{
	return agent_queues && agent_queues();
}

__attribute__((visibility("default"))) extern const struct gp_level_api gpreempt_level;

const struct gp_level_api gpreempt_level = {
	.abi = GP_LEVEL_ABI,
	.find = gp_level_find,
	.put = gp_level_put,
	.hold = gp_level_hold,
	.let_go = gp_level_let_go,
	.let_all_go = gp_level_let_all_go,
	.set = gp_level_set,
	.set_depth = gp_level_set_depth,
	.set_role = gp_level_set_role,
	.sync = gp_level_sync,
	.state = gp_level_state,
	.doors = tell_doors,
	.find_last = gp_level_find_last,
};

static void in_child(void)
{
	gp_engine.is_foreign = 1; /* queues and thread are the parent's */
	gp_gates_forget();
	gp_engine_unlock();
}

/* gpreempt doctor asks of CUDA: there is no program everywhere that starts it. */
static void knock(void)
{
	const char *name = secure_getenv("GPREEMPT_LEVEL_TRY");
	void *library = name && *name ? dlopen(name, RTLD_LAZY) : NULL;
	int (*start)(unsigned int) = NULL, r;
	char why[128];

	if (!name || !*name)
		return;
	if (library)
		*(void **)&start = dlsym(library, "cuInit");
	if (!start) {
		gp_doors_say(GP_DOOR_CUDA, "libcuda.so.1 cannot be loaded");
		return;
	}
	r = start(0);
	if (doors[GP_DOOR_CUDA].is_known)
		return;
	(void)snprintf(why, sizeof(why), "cuInit() did not call us, and returned %d", r);
	gp_doors_say(GP_DOOR_CUDA, why);
}

/* The agent is looked for now: later, in a callback, somebody may wait for our lock whose constructor runs,
 * with the linker's. */
__attribute__((constructor)) static void begin(void)
{
	*(void **)&agent_ring = dlsym(RTLD_DEFAULT, GP_AGENT_RING); /* how POSIX writes it */
	*(void **)&agent_rang = dlsym(RTLD_DEFAULT, GP_AGENT_RANG);
	*(void **)&agent_queues = dlsym(RTLD_DEFAULT, GP_AGENT_QUEUES);
	(void)pthread_atfork(gp_engine_lock, gp_engine_unlock,
			     in_child); /* it fails for want of memory alone */
	gp_agent_configure();
	knock();
}
