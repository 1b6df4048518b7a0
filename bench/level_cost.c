// SPDX-License-Identifier: MIT
/*
 * level_cost CASE LAUNCHES: what a launch takes in ROCr's door with nobody to preempt, by ns: the engine and
 * the packets that it adds.  The runtime is made up: tables of ROCm 6 or 5.2, on which a launch ends as soon
 * as it is written.  For level_cost.sh, which counts instructions too.  CASE: bare, no door; untouched, a
 * queue that nobody said anything of; throttle and gate, of an offline one; counted, an offline one of 5.2,
 * whose ring is counted too.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "level/rocr_tables.h"

#define PLACES 128
#define SIGNALS 8
#define RING 1024
#define LAUNCH 2 /* HSA_PACKET_TYPE_KERNEL_DISPATCH, and its barrier bit */
#define BARRIER (1u << 8)
#define ROUNDS 5

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed, const char *const *failed);

struct packet {
	uint16_t header, fields[27];
	uint64_t signal;
};

struct table {
	struct gp_hsa_version version;
	void *entry[PLACES];
};

static const struct {
	const char *name, *client_class, *level;
	int is_old;
} cases[] = { { "bare", NULL, NULL, 0 },
	      { "untouched", NULL, NULL, 0 },
	      { "throttle", "offline", "throttle", 0 },
	      { "gate", "offline", "", 0 },
	      { "counted", "offline", "", 1 } };

static struct table core, amd;
static int64_t values[SIGNALS];
static uint64_t nsignals, written;
static struct gp_hsa_queue made = { .size = RING };
static gp_hsa_handler handler;
static void *data;

static int nothing(void)
{
	return 0;
}

static int signal_create(int64_t value, uint32_t n, const gp_hsa_agent *consumers, gp_hsa_signal *ret)
{
	(void)n, (void)consumers;
	ret->handle = ++nsignals;
	values[nsignals] = value;
	return nsignals + 1 == SIGNALS; /* there are no more */
}

static int64_t signal_load(gp_hsa_signal signal)
{
	return __atomic_load_n(&values[signal.handle], __ATOMIC_ACQUIRE);
}

static void signal_store(gp_hsa_signal signal, int64_t value)
{
	__atomic_store_n(&values[signal.handle], value, __ATOMIC_RELEASE);
}

static int64_t signal_wait(gp_hsa_signal signal, uint32_t condition, int64_t value, uint64_t timeout,
			   uint32_t state)
{
	(void)condition, (void)value, (void)timeout, (void)state;
	return signal_load(signal); /* all that was launched has ended */
}

static int create(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *errors,
		  uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	(void)agent, (void)size, (void)type, (void)error, (void)errors, (void)private_size, (void)group_size;
	*ret = &made;
	return 0;
}

static int keep_handler(struct gp_hsa_queue *queue, gp_hsa_handler its, void *its_data)
{
	(void)queue;
	handler = its;
	data = its_data;
	return 0;
}

static uint64_t write_index(const struct gp_hsa_queue *queue)
{
	(void)queue;
	return written;
}

/* ROCr's own, and the device behind it. */
static void writer(const void *packets, uint64_t n)
{
	const struct packet *p = packets;

	for (uint64_t i = 0; i < n; i++)
		if (p[i].signal)
			__atomic_sub_fetch(&values[p[i].signal], 1, __ATOMIC_ACQ_REL);
	written += n;
}

static void bare(const void *packets, uint64_t n, uint64_t index, void *unused, gp_hsa_writer write)
{
	(void)index, (void)unused;
	write(packets, n);
}

static void make_tables(struct gp_hsa_tables *root, int is_old)
{
	uint32_t namd = is_old ? 48 : 68, intercept = is_old ? 35 : 37;

	*root = (struct gp_hsa_tables){ .version = { .major_id = is_old ? 1 : 3, .minor_id = 48 },
					.core = (void *)&core,
					.amd = (void *)&amd };
	core.version = (struct gp_hsa_version){ .major_id = is_old ? 1 : 2, .minor_id = 16 + 8 * 125 };
	amd.version = (struct gp_hsa_version){ .major_id = is_old ? 1 : 2, .minor_id = 16 + 8 * namd };
	for (int i = 0; i < PLACES; i++)
		core.entry[i] = amd.entry[i] = (void *)nothing;
	core.entry[7] = (void *)create;
	core.entry[14] = (void *)write_index;
	core.entry[37] = (void *)signal_create;
	core.entry[40] = (void *)signal_load;
	core.entry[42] = (void *)signal_store;
	core.entry[44] = (void *)signal_wait;
	amd.entry[intercept] = (void *)create;
	amd.entry[intercept + 1] = (void *)keep_handler;
}

static int open_door(const char *client_class, const char *level, int is_old)
{
	const gp_hsa_agent gpu = { .handle = 1 };
	struct gp_hsa_tables root;
	struct gp_hsa_queue *queue;

	if (client_class)
		setenv("GPREEMPT_CLASS", client_class, 1);
	if (level)
		setenv("GPREEMPT_LEVEL", level, 1);
	make_tables(&root, is_old);
	OnLoad(&root, 0, 0, NULL);
	((gp_hsa_queue_create *)core.entry[7])(gpu, RING, 0, NULL, NULL, 0, 0, &queue);
	return handler ? 0 : -1;
}

__attribute__((noinline)) static void measured(uint64_t launches)
{
	const struct packet packet = { .header = LAUNCH | BARRIER };

	for (uint64_t i = 0; i < launches; i++)
		handler(&packet, 1, i, data, writer);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The least of a few: what else a machine does only makes it longer. */
static double least_ns(uint64_t launches)
{
	uint64_t least = UINT64_MAX, since, took;

	for (int i = 0; i < ROUNDS; i++) {
		since = now_ns();
		measured(launches);
		took = now_ns() - since;
		least = took < least ? took : least;
	}
	return (double)least / (double)launches;
}

int main(int argc, char **argv)
{
	uint64_t launches = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	for (size_t i = 0; launches && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		if (i == 0)
			handler = bare;
		else if (open_door(cases[i].client_class, cases[i].level, cases[i].is_old) < 0)
			break;
		printf("%.1f\n", least_ns(launches));
		return 0;
	}
	fprintf(stderr, "usage: level_cost bare|untouched|throttle|gate|counted LAUNCHES\n");
	return 1;
}
