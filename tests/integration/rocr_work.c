// SPDX-License-Identifier: MIT
/*
 * A program on a ROCr of the tests' own: it loads the tool that HSA_TOOLS_LIB names, as ROCr does, with
 * tables that it makes up, and its queues are the driver's by CREATE_QUEUE.  Two ways to start it:
 *
 *   rocr_work             makes a queue, prints its ring's address, and "found" if the tool finds the queue
 *                         by it; then does what each line on stdin says: "write" puts a packet without a
 *                         ring of the doorbell, "ring" with one, "copy" with a copy's call, "take" takes all;
 *                         "last" opens the queue of the last launch and prints the result, its door and level
 *   ROCR_WORK_TABLES=...  gives the tool tables with these major ids of root, core and AMD's, and so many
 *                         entries of the latter two, and ends: what rocminfo is to gpreempt doctor
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend/kfd/uapi.h"
#include "level/api.h"
#include "level/rocr_tables.h"

#define MOST 128
#define SIGNALS 16

typedef bool load_fn(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed,
		     const char *const *failed);

static struct {
	struct gp_hsa_version version;
	void *entry[MOST];
} core, amd;

static struct {
	struct gp_hsa_queue hsa;
	uint64_t memory[512], wptr, rptr;
	gp_hsa_handler handler;
	void *data;
} queue;

static int64_t values[SIGNALS];
static int nsignals;

static int nothing(void)
{
	return 0;
}

static int make_signal(int64_t value, uint32_t n, const gp_hsa_agent *consumers, gp_hsa_signal *ret)
{
	(void)n, (void)consumers;
	if (++nsignals == SIGNALS)
		return 1;
	values[nsignals] = value;
	ret->handle = (uint64_t)nsignals;
	return 0;
}

static int64_t load_signal(gp_hsa_signal signal)
{
	return values[signal.handle];
}

static void store_signal(gp_hsa_signal signal, int64_t value)
{
	values[signal.handle] = value;
}

static int64_t wait_signal(gp_hsa_signal signal, uint32_t condition, int64_t value, uint64_t timeout,
			   uint32_t state)
{
	(void)condition, (void)value, (void)timeout, (void)state;
	return values[signal.handle];
}

static int make_queue(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error, void *data,
		      uint32_t private_size, uint32_t group_size, struct gp_hsa_queue **ret)
{
	struct kfd_create_queue_args args = { .ring = (uintptr_t)queue.memory,
					      .wptr = (uintptr_t)&queue.wptr,
					      .rptr = (uintptr_t)&queue.rptr,
					      .ring_size = sizeof(queue.memory),
					      .gpu_id = 1,
					      .type = 2,
					      .percent = 100,
					      .priority = 7 };
	int fd = open(getenv("GPREEMPT_KFD"), O_RDWR | O_CLOEXEC);

	(void)agent, (void)type, (void)error, (void)data, (void)private_size, (void)group_size;
	if (fd < 0 || ioctl(fd, KFD_IOC_CREATE_QUEUE, &args) < 0)
		return 1;
	queue.hsa.size = size;
	*ret = &queue.hsa;
	return 0;
}

static int set_handler(struct gp_hsa_queue *unused, gp_hsa_handler handler, void *data)
{
	(void)unused;
	queue.handler = handler;
	queue.data = data;
	return 0;
}

/* As of ROCm 6; numbers that are not needed here are any. */
static void make_tables(struct gp_hsa_tables *root)
{
	uint32_t ids[3] = { 3, 2, 2 }, ncore = 125, namd = 68;
	const char *words = getenv("ROCR_WORK_TABLES");

	if (words && sscanf(words, "%u %u %u %u %u", &ids[0], &ids[1], &ids[2], &ncore, &namd) != 5)
		exit(2);
	*root = (struct gp_hsa_tables){ .version = { .major_id = ids[0], .minor_id = 48 },
					.core = (void *)&core,
					.amd = (void *)&amd };
	core.version = (struct gp_hsa_version){ .major_id = ids[1], .minor_id = 16 + 8 * ncore };
	amd.version = (struct gp_hsa_version){ .major_id = ids[2], .minor_id = 16 + 8 * namd };
	for (uint32_t i = 0; i < MOST; i++)
		core.entry[i] = amd.entry[i] = (void *)nothing;
	core.entry[37] = (void *)make_signal;
	core.entry[40] = (void *)load_signal;
	core.entry[42] = (void *)store_signal;
	core.entry[44] = (void *)wait_signal;
	amd.entry[37] = (void *)make_queue;
	amd.entry[38] = (void *)set_handler;
}

/* Whatever becomes of the tool, a runtime goes on. */
static void load_tool(struct gp_hsa_tables *root)
{
	const char *name = getenv("HSA_TOOLS_LIB");
	void *tool = name ? dlopen(name, RTLD_NOW) : NULL;
	load_fn *load = NULL;

	if (tool)
		*(void **)&load = dlsym(tool, "OnLoad");
	if (load)
		(void)load(root, 0, 0, NULL);
}

static void say_queue(const struct gp_hsa_queue *made)
{
	void *tool = dlopen(getenv("HSA_TOOLS_LIB"), RTLD_NOW | RTLD_NOLOAD);
	const struct gp_level_api *level = tool ? dlsym(tool, GP_LEVEL_API) : NULL;
	struct gp_level_queue *by_ring = level ? level->find(NULL, (uintptr_t)queue.memory) : NULL;
	struct gp_level_queue *by_handle = level ? level->find(made, 0) : NULL;

	printf("%" PRIuPTR " %s\n", (uintptr_t)queue.memory,
	       by_ring && by_ring == by_handle ? "found" : "not found");
	fflush(stdout);
}

static void write_down(const void *packets, uint64_t n)
{
	(void)packets;
	__atomic_fetch_add(&queue.wptr, n, __ATOMIC_SEQ_CST);
}

static void open_last(void)
{
	const struct gp_stream_opts opts = { .size = sizeof(opts), .flags = GP_STREAM_LAST };
	struct gp_stream_info info = { .size = sizeof(info) };
	struct gp_stream *stream = NULL;
	int with_another = gp_stream_open(NULL, &queue.hsa, &opts, &stream);
	int r = gp_stream_open(NULL, NULL, &opts, &stream);

	if (r == 0)
		r = gp_stream_query(stream, &info);
	printf("%d %d %s %u\n", with_another, r, info.door[0] ? info.door : "-", info.level);
	fflush(stdout);
	gp_stream_close(stream);
}

static void obey(const char *word)
{
	static const uint16_t packet[32] = { 2 | 1 << 8 }; /* a launch */

	if (!strcmp(word, "last"))
		open_last();
	else if (!strcmp(word, "ring"))
		queue.handler(packet, 1, queue.wptr, queue.data, write_down);
	else if (!strcmp(word, "take"))
		__atomic_store_n(&queue.rptr, queue.wptr, __ATOMIC_SEQ_CST);
	else
		write_down(packet, 1);
	if (!strcmp(word, "copy"))
		(void)((gp_hsa_copy *)amd.entry[15])(NULL, (gp_hsa_agent){ 5 }, NULL, (gp_hsa_agent){ 5 }, 0,
						     0, NULL, (gp_hsa_signal){ 0 });
}

int main(void)
{
	struct gp_hsa_tables root;
	struct gp_hsa_queue *made = NULL;
	char word[16];

	make_tables(&root);
	load_tool(&root);
	if (getenv("ROCR_WORK_TABLES"))
		return 0;
	if (((gp_hsa_queue_create *)core.entry[7])((gp_hsa_agent){ 5 }, 64, 0, NULL, NULL, 0, 0, &made) !=
		    0 ||
	    !queue.handler)
		return 1;
	say_queue(made);
	while (scanf("%15s", word) == 1)
		obey(word);
	return 0;
}
