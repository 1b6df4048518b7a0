// SPDX-License-Identifier: MIT
/* src/discover/ on whole trees: those of tests/unit/trees, and some that are made here. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "discover/discover.h"
#include "unit.h"

#define KFD "sys/class/kfd/kfd/"
#define DEBUGFS "sys/kernel/debug/kfd/"

struct state {
	char root[64]; /* a tree being made */
	struct gp_found *found;
};

static int begin(void **arg)
{
	struct state *s = calloc(1, sizeof(*s));

	snprintf(s->root, sizeof(s->root), "/tmp/gpreempt-tree-XXXXXX");
	*arg = s;
	(void)umask(022); /* what a group may write is not believed */
	return mkdtemp(s->root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int end(void **arg)
{
	struct state *s = *arg;

	gp_found_free(s->found);
	nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

/* The path of a file of the tree being made; its folders are there afterwards. */
static const char *path_in(struct state *s, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", s->root, name);
	for (char *p = path + strlen(s->root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0755);
		*p = '/';
	}
	return path;
}

static void put(struct state *s, const char *name, const char *text)
{
	FILE *file = fopen(path_in(s, name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void put_node(struct state *s, uint32_t gpu_id, uint32_t gfx)
{
	char text[128];

	snprintf(text, sizeof(text), "%u\n", gpu_id);
	put(s, KFD "topology/nodes/1/gpu_id", text);
	snprintf(text, sizeof(text), "gfx_target_version %u\nnum_sdma_engines 2\n", gfx);
	put(s, KFD "topology/nodes/1/properties", text);
}

static void put_queue(struct state *s, uint32_t pid, uint32_t id, uint32_t gpu, uint32_t size, uint32_t type)
{
	static const char *const names[] = { "gpuid", "size", "type" };
	const uint32_t values[] = { gpu, size, type };
	char name[128], text[16];

	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), KFD "proc/%u/queues/%u/%s", pid, id, names[i]);
		snprintf(text, sizeof(text), "%u", values[i]);
		put(s, name, text);
	}
}

/* What the stock driver would print of a compute queue, in three lines of 64. */
static void add_mqd(FILE *file, uint32_t gpu, uint64_t ring, uint32_t doorbell, uint32_t size_log)
{
	fprintf(file, "  Compute queue on device %x\n", gpu);
	fprintf(file,
		"    00000000: c0310800 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n");
	fprintf(file, "    00000200: %08x 00007f00 00000001 00000000 00000000 00000000 00000007 00000000\n",
		doorbell << 12);
	fprintf(file, "    00000220: %08x %08x 00000000 00001000 00000000 00001040 00000000 %08x\n",
		(uint32_t)(ring >> 8), (uint32_t)(ring >> 40), doorbell << 2);
	fprintf(file, "    00000240: 00000000 %08x 00000000 00000000 00000000 00000000 00000000 00000000\n",
		size_log - 1);
	fprintf(file,
		"    000007e0: 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n");
}

static void add_sdma_mqd(FILE *file, uint32_t gpu, uint64_t ring, uint32_t doorbell, uint32_t engine)
{
	fprintf(file, "  SDMA queue on device %x\n", gpu);
	fprintf(file, "    00000000: 00000024 %08x %08x 00000000 00000000 00000000 00000000 00000000\n",
		(uint32_t)(ring >> 8), (uint32_t)(ring >> 40));
	fprintf(file, "    00000040: 00000000 00000000 00000000 00000000 00000000 00000000 %08x 00000000\n",
		doorbell << 2);
	fprintf(file, "    000001e0: 00000000 00000000 00000000 00000000 00000000 00000000 %08x 00000000\n",
		engine);
}

static FILE *open_mqds(struct state *s, uint32_t pid)
{
	FILE *file = fopen(path_in(s, DEBUGFS "mqds"), "w");

	assert_non_null(file);
	fprintf(file, "Process %u PASID 0x8000:\n", pid);
	return file;
}

static const struct gp_found *look(struct state *s, struct gp_discover_opts opts)
{
	if (!opts.root)
		opts.root = s->root;
	gp_found_free(s->found);
	s->found = NULL;
	assert_int_equal(gp_discover(&opts, &s->found), 0);
	return s->found;
}

static const char *recorded(const char *name)
{
	static char path[512];
	const char *source = getenv("GPREEMPT_SOURCE");

	snprintf(path, sizeof(path), "%s/tests/unit/trees/%s", source ? source : ".", name);
	return path;
}

static void assert_queue(const struct gp_found_queue *q, uint32_t id, uint32_t id_from, uint64_t ring,
			 uint32_t priority, uint32_t active)
{
	assert_non_null(q);
	assert_int_equal(q->queue_id, id);
	assert_int_equal(q->from[GP_FIELD_ID], id_from);
	assert_true(q->ring == ring);
	assert_int_equal(q->priority, priority);
	assert_int_equal(q->active, active);
	assert_int_equal(q->from[GP_FIELD_ACTIVE], GP_SOURCE_RLS);
}

/*
 * Recorded from the real amdkfd with two devices.  What is expected is what the program that made the queues
 * printed: its ids, its rings, priorities 15, 7, 11 and 7, the second queue stopped by UPDATE_QUEUE.
 */
static void a_machine_recorded_with_the_stock_driver_is_known_queue_by_queue(void **arg)
{
	const struct gp_found *f =
		look(*arg, (struct gp_discover_opts){ .root = recorded("bed"), .flags = GP_DISCOVER_HQDS });
	const struct gp_found_queue *sdma;

	assert_int_equal(f->nqueues, 6);
	assert_queue(gp_found_by_id(f, 69, 0), 0, GP_SOURCE_INFERRED, 0x7f1345a43000, 15, 1);
	assert_queue(gp_found_by_id(f, 69, 1), 1, GP_SOURCE_INFERRED, 0x7f13457dc000, 7, 0);
	assert_queue(gp_found_by_id(f, 69, 4), 4, GP_SOURCE_INFERRED, 0x7f13452fb000, 11, 1);
	assert_queue(gp_found_by_id(f, 69, 3), 3, GP_SOURCE_SYSFS, 0x7f1345565000, 7, 1);
	assert_queue(gp_found_by_id(f, 70, 0), 0, GP_SOURCE_SYSFS, 0x7f5941775000, 7, 1);
	assert_int_equal(gp_found_by_id(f, 69, 1)->mapped, 0);
	assert_int_equal(gp_found_by_id(f, 69, 4)->mapped, 1);
	assert_int_equal(gp_found_by_id(f, 69, 4)->from[GP_FIELD_MAPPED], GP_SOURCE_HQDS);
	assert_int_equal(gp_found_by_id(f, 69, 3)->gpu_id, 62436);
	assert_int_equal(gp_found_by_id(f, 69, 0)->gpu_id, 37856);
	assert_int_equal(gp_found_by_id(f, 69, 0)->ring_size, 65536);
	assert_true(gp_found_by_id(f, 69, 0)->rptr_address == 0x7f1345c43000);
	assert_true(gp_found_by_id(f, 69, 0)->wptr_address == 0x7f1345c43040);

	sdma = gp_found_by_ring(f, 69, 0x7f1345575000);
	assert_non_null(sdma);
	assert_int_equal(sdma->queue_id, 2);
	assert_int_equal(sdma->kind, GP_KIND_SDMA);
	assert_int_equal(sdma->ring_size, 65536);
	assert_int_equal(sdma->active, 1);
	assert_int_equal(sdma->from[GP_FIELD_PRIORITY], GP_SOURCE_UNKNOWN);
	assert_true(sdma->wptr_address == 0x7f1345c3b040);
	assert_int_equal(sdma->from[GP_FIELD_WPTR], GP_SOURCE_RLS);
}

static void devices_and_clients_of_that_machine_are_known(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("bed") });

	assert_int_equal(f->ndevices, 2);
	assert_int_equal(f->devices[0].node, 1);
	assert_int_equal(f->devices[0].gpu_id, 37856);
	assert_int_equal(f->devices[0].compute_units, 4);
	assert_int_equal(f->devices[0].queue_slots, 24);
	assert_int_equal(f->devices[0].xccs, 1);
	assert_int_equal(f->devices[0].gfx_target, 90402);
	assert_int_equal(f->devices[0].render_minor, 128);
	assert_int_equal(f->devices[1].gpu_id, 62436);
	assert_int_equal(f->nclients, 2);
	assert_int_equal(gp_found_client(f, 70)->pasid, 0x8001);
	assert_int_equal(gp_found_client(f, 70)->uid, 0);
	assert_int_equal(gp_found_client(f, 70)->inner_pid, 70);
	assert_string_equal(gp_found_client(f, 70)->name, "hold");
	assert_null(gp_found_client(f, 71));
	assert_int_equal(f->sources[GP_SOURCE_SYSFS].status, 0);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].status, 0);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].lines, 344);
	assert_int_equal(f->sources[GP_SOURCE_HQDS].status, -ENODATA);
	assert_int_equal(f->sources[GP_SOURCE_LOG].status, -ENODATA);
}

static void a_machine_of_eight_xccs_has_each_queue_once(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("xccs") });

	assert_int_equal(f->nqueues, 2);
	assert_int_equal(f->devices[0].xccs, 8);
	assert_queue(gp_found_by_id(f, 70, 3), 3, GP_SOURCE_SYSFS, 0x7f8578a6d000, 7, 1);
	assert_int_equal(gp_found_by_id(f, 70, 2)->kind, GP_KIND_SDMA);
	assert_true(gp_found_by_id(f, 70, 2)->ring == 0x7f8578a7d000);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].skipped, 0);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].truncated, 0);
}

static void of_one_process_alone_nothing_else_is_listed(void **arg)
{
	const struct gp_found *f =
		look(*arg, (struct gp_discover_opts){ .root = recorded("bed"), .pid = 70 });

	assert_int_equal(f->nqueues, 1);
	assert_int_equal(f->nclients, 1);
	assert_int_equal(f->queues[0].pid, 70);
	f = look(*arg, (struct gp_discover_opts){ .root = recorded("bed"), .pid = 71 });
	assert_int_equal(f->nqueues + f->nclients, 0);
}

static void annotated_text_gives_ids_and_the_device_by_its_pci_address(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("annotated") });
	const struct gp_found_queue *q = gp_found_by_id(f, 12345, 2);

	assert_int_equal(f->nqueues, 2);
	assert_non_null(q);
	assert_int_equal(q->from[GP_FIELD_ID], GP_SOURCE_MQDS);
	assert_true(q->ring == 0x7f5a00200000);
	assert_int_equal(q->priority, 11);
	assert_int_equal(q->active, 0);
	assert_int_equal(q->gpu_id, 17);
	assert_int_equal(q->from[GP_FIELD_GPU], GP_SOURCE_MQDS);
	assert_int_equal(q->ring_size, 1048576);
	assert_int_equal(q->from[GP_FIELD_RING_SIZE], GP_SOURCE_SYSFS);
	assert_int_equal(gp_found_client(f, 12345)->pasid, 0x8001);
}

static void a_pci_address_that_partitions_share_names_no_device(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put(s, KFD "topology/nodes/1/gpu_id", "17\n");
	put(s, KFD "topology/nodes/1/properties", "location_id 256\ndomain 0\n");
	put(s, KFD "topology/nodes/2/gpu_id", "18\n");
	put(s, KFD "topology/nodes/2/properties", "location_id 512\ndomain 0\n");
	put(s, KFD "topology/nodes/3/gpu_id", "19\n");
	put(s, KFD "topology/nodes/3/properties", "location_id 513\ndomain 0\n");
	put(s, DEBUGFS "mqds",
	    "Process 5 PASID 0x8000:\n"
	    "  Compute queue on device 0000:01:00.0\n    Address: 0x11000\n"
	    "  Compute queue on device 0000:02:00.0\n    Address: 0x22000\n"
	    "  Compute queue on device 0000:03:00.0\n    Address: 0x33000\n");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(gp_found_by_ring(f, 5, 0x11000)->gpu_id, 17);
	assert_int_equal(gp_found_by_ring(f, 5, 0x22000)->from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
	assert_int_equal(gp_found_by_ring(f, 5, 0x33000)->from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
}

static void text_and_hex_of_one_queue_become_one_queue(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("mixed") });

	assert_int_equal(f->nqueues, 2);
	assert_int_equal(f->queues[0].queue_id, 3);
	assert_true(f->queues[0].ring == 0x7f5a00000000);
	assert_int_equal(f->queues[0].doorbell, 0x800);
	assert_int_equal(f->queues[1].queue_id, 5);
	assert_true(f->queues[1].ring == 0x7f5a00200000);
	assert_int_equal(f->queues[1].active, 1);
	assert_int_equal(f->queues[1].from[GP_FIELD_ACTIVE], GP_SOURCE_MQDS);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].skipped, 1);
}

static void nvidias_gpus_are_known_by_their_address_in_its_order(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("nvidia") });

	assert_int_equal(f->ndevices, 2);
	assert_int_equal(f->devices[0].vendor, GP_VENDOR_NVIDIA);
	assert_int_equal(f->devices[0].gpu_id, 0x4100); /* as NV2080_CTRL_CMD_GPU_GET_ID has it */
	assert_string_equal(f->devices[0].name, "NVIDIA H200");
	assert_string_equal(f->devices[0].uuid, "GPU-6d5b3a1c-2f60-4a9e-8f0e-1b2c3d4e5f60");
	assert_int_equal(f->devices[0].instances, 0);
	assert_int_equal(f->devices[1].gpu_id, 0xc100);
	assert_int_equal(f->devices[1].node, 1);
	assert_int_equal(f->devices[1].instances, 2);
	assert_int_equal(f->nqueues, 0);
}

static void what_a_file_says_now_counts_though_it_was_read_before(void **arg)
{
	struct state *s = *arg;
	const char *path = "proc/driver/nvidia/gpus/0001:02:03.0/information";

	put(s, path, "Model: \t\t One\n");
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->devices[0].name, "One");
	assert_int_equal(s->found->devices[0].gpu_id, 0x10203);
	(void)unlink(path_in(s, path));
	put(s, path, "Model: \t\t Two\nno colon\nGPU UUID:\n");
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->devices[0].name, "Two");
	(void)unlink(path_in(s, path));
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->devices[0].name, "");
	put(s, "proc/driver/nvidia/gpus/no-address/information", "Model: \t\t None\n");
	assert_int_equal(look(s, (struct gp_discover_opts){ 0 })->ndevices, 1);
}

static void nvidias_driver_has_a_version_where_it_is_loaded(void **arg)
{
	char version[32];

	(void)arg;
	assert_int_equal(gp_nvidia_version(recorded("nvidia"), version, sizeof(version)), 0);
	assert_string_equal(version, "580.159.04");
	assert_int_equal(gp_nvidia_version(recorded("bed"), version, sizeof(version)), -ENOENT);
}

static void of_a_truncated_file_no_id_is_guessed_and_nobody_is_called_idle(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("truncated") });
	size_t rings = 0, ids = 0;

	assert_int_equal(f->sources[GP_SOURCE_MQDS].truncated, 1);
	assert_int_equal(f->sources[GP_SOURCE_RLS].truncated, 1);
	for (size_t i = 0; i < f->nqueues; i++) {
		rings += f->queues[i].from[GP_FIELD_RING] != GP_SOURCE_UNKNOWN;
		ids += f->queues[i].from[GP_FIELD_ID] != GP_SOURCE_UNKNOWN;
		assert_true(f->queues[i].from[GP_FIELD_ACTIVE] != GP_SOURCE_RLS);
		assert_true(f->queues[i].from[GP_FIELD_ID] != GP_SOURCE_INFERRED);
	}
	assert_int_equal(rings, 3);
	assert_int_equal(ids, 6);
	assert_int_equal(f->nqueues, 9);
}

static void without_debugfs_sysfs_alone_is_known_and_why_is_said(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("forbidden") });

	assert_int_equal(f->nqueues, 6);
	for (size_t i = 0; i < f->nqueues; i++) {
		assert_int_equal(f->queues[i].from[GP_FIELD_ID], GP_SOURCE_SYSFS);
		assert_int_equal(f->queues[i].from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
		assert_int_equal(f->queues[i].from[GP_FIELD_PRIORITY], GP_SOURCE_UNKNOWN);
		assert_int_equal(f->queues[i].from[GP_FIELD_ACTIVE], GP_SOURCE_UNKNOWN);
	}
	assert_int_equal(f->sources[GP_SOURCE_MQDS].status, -EISDIR);
	assert_int_equal(f->sources[GP_SOURCE_RLS].status, -EISDIR);
}

static void a_machine_without_the_driver_has_no_queues_and_that_is_no_error(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f = look(s, (struct gp_discover_opts){ 0 });

	assert_int_equal(f->nqueues + f->nclients + f->ndevices, 0);
	assert_int_equal(f->sources[GP_SOURCE_SYSFS].status, -ENOENT);
	assert_int_equal(f->sources[GP_SOURCE_MQDS].status, -ENOENT);
	f = look(s, (struct gp_discover_opts){ .root = "/nonexistent/root" });
	assert_int_equal(f->nqueues, 0);
	assert_int_equal(f->sources[GP_SOURCE_RLS].status, -ENOENT);
	assert_null(gp_found_by_id(f, 1, 1));
	assert_null(gp_found_by_ring(f, 1, 1));
}

static void a_process_without_queues_is_a_client_all_the_same(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put(s, KFD "proc/5/pasid", "32770\n");
	assert_int_equal(mkdir(path_in(s, KFD "proc/5/queues"), 0755), 0);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 0);
	assert_int_equal(f->nclients, 1);
	assert_int_equal(f->clients[0].pasid, 32770);
	assert_int_equal(f->clients[0].uid, UINT32_MAX);
}

static void a_queue_that_goes_while_we_look_is_no_queue(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put_queue(s, 5, 1, 17, 4096, 0);
	assert_int_equal(mkdir(path_in(s, KFD "proc/5/queues/2"), 0755), 0);
	put(s, KFD "proc/5/queues/3/size", "4096");
	put(s, KFD "proc/5/queues/x/size", "4096");
	put(s, KFD "proc/5/queues/00000000000000000000000000000000000000001/size", "4096");
	put(s, KFD "proc/6/pasid", "1\n"); /* its queues are gone already */
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 2);
	assert_int_equal(f->queues[0].queue_id, 1);
	assert_int_equal(f->queues[1].queue_id, 3);
	assert_int_equal(f->queues[1].from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
}

static void attributes_that_are_no_numbers_are_unknown(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put(s, KFD "proc/5/queues/1/gpuid", "seventeen");
	put(s, KFD "proc/5/queues/1/type", "9");
	put(s, KFD "proc/5/queues/1/size", "65536");
	put(s, KFD "proc/5/queues/2/gpuid", "4294967296");
	put(s, KFD "proc/5/queues/2/type", "4");
	put(s, KFD "proc/5/queues/2/size", "");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 2);
	assert_int_equal(f->queues[0].from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
	assert_int_equal(f->queues[0].from[GP_FIELD_KIND], GP_SOURCE_UNKNOWN);
	assert_int_equal(f->queues[0].ring_size, 65536);
	assert_int_equal(f->queues[1].kind, GP_KIND_XGMI);
	assert_int_equal(f->queues[1].from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
	assert_int_equal(f->queues[1].from[GP_FIELD_RING_SIZE], GP_SOURCE_UNKNOWN);
}

static void an_id_is_certain_where_size_kind_and_device_leave_one_choice(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file;

	put_queue(s, 5, 1, 17, 4 << 14, 0);
	put_queue(s, 5, 2, 17, 4 << 12, 0);
	put_queue(s, 5, 3, 18, 4 << 12, 0);
	put_queue(s, 5, 4, 17, 4 << 18, 1);
	file = open_mqds(s, 5);
	add_sdma_mqd(file, 17, 0x44000, 0x900, 0);
	add_mqd(file, 18, 0x33000, 0x800, 12);
	add_mqd(file, 17, 0x22000, 0x800, 12);
	add_mqd(file, 17, 0x11000, 0x802, 14);
	fclose(file);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 4);
	for (uint32_t id = 1; id <= 4; id++) {
		const struct gp_found_queue *q = gp_found_by_id(f, 5, id);

		assert_non_null(q);
		assert_true(q->ring == id * 0x11000);
		assert_int_equal(q->from[GP_FIELD_ID], GP_SOURCE_SYSFS);
	}
}

static void among_queues_alike_ids_follow_the_doorbells_and_are_marked_inferred(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file;

	for (uint32_t id = 3; id <= 5; id++)
		put_queue(s, 5, id, 17, 4 << 12, 0);
	file = open_mqds(s, 5);
	add_mqd(file, 17, 0x33000, 0x800, 12);
	add_mqd(file, 17, 0x55000, 0x804, 12);
	add_mqd(file, 17, 0x44000, 0x802, 12);
	fclose(file);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 3);
	assert_int_equal(f->clients[0].pasid, 0x8000); /* sysfs does not say it here */
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(f->queues[i].queue_id, i + 3);
		assert_true(f->queues[i].ring == (i + 3) * 0x11000);
		assert_int_equal(f->queues[i].from[GP_FIELD_ID], GP_SOURCE_INFERRED);
	}
}

static void among_sdma_queues_alike_ids_follow_their_age(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file;

	put_node(s, 17, 90402);
	put_queue(s, 5, 1, 17, 4 << 18, 1);
	put_queue(s, 5, 2, 17, 4 << 18, 1);
	put_queue(s, 5, 3, 17, 4 << 18, 4);
	file = open_mqds(s, 5);
	add_sdma_mqd(file, 17, 0x33000, 0xa00, 2); /* newest first; engines from 2 on are XGMI's */
	add_sdma_mqd(file, 17, 0x22000, 0x900, 0);
	add_sdma_mqd(file, 17, 0x11000, 0x902, 1);
	fclose(file);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(f->queues[i].ring == (i + 1) * 0x11000);
		assert_int_equal(f->queues[i].queue_id, i + 1);
		assert_int_equal(f->queues[i].from[GP_FIELD_ID],
				 i < 2 ? GP_SOURCE_INFERRED : GP_SOURCE_SYSFS);
	}
	assert_int_equal(f->queues[2].kind, GP_KIND_XGMI);
}

static void where_the_counts_differ_no_id_is_given_and_nothing_is_lost(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file;

	put_queue(s, 5, 1, 17, 4 << 12, 0);
	put_queue(s, 5, 2, 17, 4 << 12, 0);
	put_queue(s, 5, 3, 17, 4 << 14, 0);
	file = open_mqds(s, 5);
	add_mqd(file, 17, 0x33000, 0x802, 14);
	add_mqd(file, 17, 0x11000, 0x800, 12);
	fclose(file);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 4);
	assert_true(gp_found_by_id(f, 5, 3)->ring == 0x33000);
	assert_int_equal(gp_found_by_id(f, 5, 1)->from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
	assert_int_equal(gp_found_by_id(f, 5, 2)->from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
	assert_int_equal(gp_found_by_ring(f, 5, 0x11000)->from[GP_FIELD_ID], GP_SOURCE_UNKNOWN);
}

static void an_id_twice_in_a_file_is_two_queues_and_takes_one_entry_of_sysfs(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put_queue(s, 5, 1, 17, 4 << 12, 0);
	put(s, DEBUGFS "mqds",
	    "Process 5 PASID 0x8000:\n"
	    "  Compute queue on device 11\n    Queue ID: 1\n    Address: 0x11000\n"
	    "  Compute queue on device 11\n    Queue ID: 1\n    Address: 0x22000\n"
	    "  Compute queue on device 11\n    Queue ID: 1\n    Address: 0x11000\n    priority: 9\n"
	    "  Compute queue on device 11\n    Queue ID: 2\n    Address: 0x11000\n    priority: 3\n");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->nqueues, 3);
	assert_int_equal(f->queues[2].queue_id, 2);
	assert_true(f->queues[0].ring == 0x11000);
	assert_int_equal(f->queues[0].priority, 9);
	assert_int_equal(f->queues[0].ring_size, 4 << 12);
	assert_true(f->queues[1].ring == 0x22000);
	assert_int_equal(f->queues[1].from[GP_FIELD_RING_SIZE], GP_SOURCE_UNKNOWN);
}

static void no_run_list_means_idle_under_hws_and_nothing_under_mes_or_without_a_scheduler(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file = open_mqds(s, 5);

	add_mqd(file, 17, 0x11000, 0x800, 12);
	fclose(file);
	put(s, DEBUGFS "rls", "Node 1, gpu_id 11:\n  No active runlist\n");
	put_node(s, 17, 90402);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->queues[0].active, 0);
	assert_int_equal(f->queues[0].from[GP_FIELD_ACTIVE], GP_SOURCE_RLS);

	put(s, "sys/module/amdgpu/parameters/sched_policy", "2\n");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->queues[0].active, 1);
	assert_int_equal(f->queues[0].from[GP_FIELD_ACTIVE], GP_SOURCE_MQDS);

	put(s, "sys/module/amdgpu/parameters/sched_policy", "0\n");
	put_node(s, 17, 110000);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(f->queues[0].active, 1);
	assert_int_equal(f->queues[0].from[GP_FIELD_ACTIVE], GP_SOURCE_MQDS);
}

static void a_run_lists_entry_with_anothers_mqd_is_another_queue(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	FILE *file = open_mqds(s, 5);

	add_mqd(file, 17, 0x11000, 0x800, 12);
	add_mqd(file, 17, 0x22000, 0x802, 12);
	fclose(file);
	put_node(s, 17, 90402);
	put(s, DEBUGFS "rls",
	    "Node 1, gpu_id 11:\n  00000000: c005a200 20000010 00002000 00800000 00007f00 00001040 00000000 c005a200\n"
	    "  00000020: 20000010 00002008 00bad000 00007f00 00001040 00000000\n");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(gp_found_by_ring(f, 5, 0x11000)->active, 1);
	assert_int_equal(gp_found_by_ring(f, 5, 0x22000)->active, 0);
}

#define CREATED(pid, ring) \
	":3:rocdevice.cpp :3118: 1 us: " pid "Created SWq=0x1000 to map on HWq=" ring \
	" with size 256 with priority 2, cooperative: 0\n"
#define USED(pid, ring, id) \
	":4:rocvirtual.cpp :906 : 2 us: " pid "SWq=0x1000, HWq=" ring ", id=" id ", Dispatch\n"

static void a_log_adds_the_runtimes_id_to_the_queue_with_its_ring(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_queue *q;
	const struct gp_found *f;
	char log[128];
	FILE *file = open_mqds(s, 5);

	add_mqd(file, 17, 0x11000, 0x800, 12);
	fclose(file);
	put_queue(s, 5, 3, 17, 4 << 12, 0);
	put(s, "log", CREATED("[pid:5 tid:1] ", "0x11000") USED("[pid:5 tid:1] ", "0x11000", "9"));
	snprintf(log, sizeof(log), "%s/log", s->root);
	f = look(s, (struct gp_discover_opts){ .log = log });
	assert_int_equal(f->nqueues, 1);
	q = &f->queues[0];
	assert_int_equal(q->queue_id, 3);
	assert_int_equal(q->runtime_id, 9);
	assert_int_equal(q->from[GP_FIELD_RUNTIME_ID], GP_SOURCE_LOG);
	assert_int_equal(q->from[GP_FIELD_PRIORITY], GP_SOURCE_MQDS);
	assert_int_equal(q->priority, 7);

	/* Without a pid: the one process that has such a ring. */
	put(s, "log", USED("", "0x11000", "8"));
	f = look(s, (struct gp_discover_opts){ .log = log });
	assert_int_equal(f->nqueues, 1);
	assert_int_equal(f->queues[0].runtime_id, 8);

	/* Another process, whatever its ring. */
	put(s, "log", USED("[pid:6 tid:1] ", "0x11000", "8"));
	f = look(s, (struct gp_discover_opts){ .log = log });
	assert_int_equal(f->nqueues, 2);
	assert_int_equal(gp_found_by_id(f, 5, 3)->from[GP_FIELD_RUNTIME_ID], GP_SOURCE_UNKNOWN);
}

static void a_log_of_a_process_that_is_gone_is_all_there_is(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	char log[128];

	assert_int_equal(mkdir(path_in(s, KFD "proc"), 0755), 0);
	put(s, "log",
	    CREATED("[pid:5 tid:1] ", "0x11000") USED("[pid:5 tid:1] ", "0x11000", "9")
		    CREATED("[pid:5 tid:1] ", "0x22000") "[pid:5 tid:1] Deleting hardware queue 0x22000\n");
	snprintf(log, sizeof(log), "%s/log", s->root);
	f = look(s, (struct gp_discover_opts){ .log = log, .pid = 5 });
	assert_int_equal(f->nqueues, 2);
	assert_int_equal(f->queues[0].pid, 5);
	assert_int_equal(f->queues[0].from[GP_FIELD_ID], GP_SOURCE_UNKNOWN);
	assert_int_equal(f->queues[0].runtime_id, 9);
	assert_int_equal(f->queues[0].priority, 11);
	assert_int_equal(f->queues[0].from[GP_FIELD_PRIORITY], GP_SOURCE_LOG);
	assert_int_equal(f->queues[0].active, 0);
	assert_int_equal(f->queues[0].from[GP_FIELD_ACTIVE], GP_SOURCE_SYSFS);
	assert_int_equal(f->queues[1].active, 0);
	assert_int_equal(f->queues[1].from[GP_FIELD_ACTIVE], GP_SOURCE_LOG);
	assert_null(gp_found_client(f, 5));
}

static void without_debugfs_a_log_and_sysfs_are_joined_by_size_and_marked_inferred(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	char log[128];

	put_queue(s, 5, 1, 17, 256 * 64, 0);
	put_queue(s, 5, 2, 18, 256 * 64, 0);
	put_queue(s, 5, 3, 18, 4096, 0);
	put_queue(s, 5, 4, 18, 256 * 64, 1);
	put(s, "log",
	    CREATED("[pid:5 tid:1] ", "0x22000") CREATED("[pid:5 tid:1] ", "0x11000")
		    CREATED("[pid:5 tid:1] ", "0x99000") "[pid:5 tid:1] Deleting hardware queue 0x99000\n");
	snprintf(log, sizeof(log), "%s/log", s->root);
	f = look(s, (struct gp_discover_opts){ .log = log });
	assert_int_equal(f->nqueues, 4);
	assert_true(gp_found_by_id(f, 5, 1)->ring == 0x22000);
	assert_int_equal(gp_found_by_id(f, 5, 1)->from[GP_FIELD_ID], GP_SOURCE_INFERRED);
	assert_int_equal(gp_found_by_id(f, 5, 1)->gpu_id, 17);
	assert_int_equal(gp_found_by_id(f, 5, 1)->from[GP_FIELD_GPU], GP_SOURCE_INFERRED);
	assert_true(gp_found_by_id(f, 5, 2)->ring == 0x11000);
	assert_int_equal(gp_found_by_id(f, 5, 3)->from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
	assert_int_equal(gp_found_by_id(f, 5, 1)->from[GP_FIELD_ACTIVE], GP_SOURCE_UNKNOWN);
}

static void a_log_written_in_a_container_is_the_containers_process(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	char log[600];

	snprintf(log, sizeof(log), "%s/rocm7.log", recorded("docker"));
	f = look(s, (struct gp_discover_opts){ .root = recorded("docker"), .log = log, .pid = 158036 });
	assert_int_equal(f->nqueues, 1);
	assert_int_equal(f->queues[0].pid, 158036);
	assert_int_equal(f->queues[0].runtime_id, 1);

	/* Three containers have a process 17: whose log it is nobody can tell. */
	f = look(s, (struct gp_discover_opts){ .root = recorded("docker"), .log = log });
	assert_int_equal(f->nqueues, 4);
	assert_int_equal(f->queues[0].pid, 0);
	assert_int_equal(f->queues[0].from[GP_FIELD_ACTIVE], GP_SOURCE_UNKNOWN);
}

static void a_log_in_a_container_is_known_by_its_ring(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	char log[128];
	FILE *file = open_mqds(s, 5);

	add_mqd(file, 17, 0x11000, 0x800, 12);
	fprintf(file, "Process 6 PASID 0x8001:\n");
	add_mqd(file, 17, 0x22000, 0x1000, 12);
	fclose(file);
	put(s, "proc/5/status", "NSpid:\t5\t17\n");
	put(s, "proc/6/status", "NSpid:\t6\t17\n");
	put(s, "log", USED("[pid:17 tid:1] ", "0x22000", "4"));
	snprintf(log, sizeof(log), "%s/log", s->root);
	f = look(s, (struct gp_discover_opts){ .log = log });
	assert_int_equal(f->nqueues, 2);
	assert_int_equal(gp_found_by_ring(f, 6, 0x22000)->runtime_id, 4);
	assert_int_equal(gp_found_by_ring(f, 5, 0x11000)->from[GP_FIELD_RUNTIME_ID], GP_SOURCE_UNKNOWN);
}

static void a_log_that_cannot_be_read_is_an_error_and_so_is_a_flag_from_the_future(void **arg)
{
	struct state *s = *arg;
	struct gp_found *found = NULL;

	assert_int_equal(
		gp_discover(&(struct gp_discover_opts){ .root = s->root, .log = "/nonexistent/log" }, &found),
		-ENOENT);
	assert_int_equal(gp_discover(&(struct gp_discover_opts){ .root = s->root, .log = s->root }, &found),
			 -EISDIR);
	assert_int_equal(
		gp_discover(&(struct gp_discover_opts){ .root = s->root, .flags = 1u << 31 }, &found),
		-EINVAL);
	assert_null(found);
}

static void containers_and_pods_of_clients_are_known_with_their_names(void **arg)
{
	const struct gp_found *f = look(*arg, (struct gp_discover_opts){ .root = recorded("docker") });
	const struct gp_found_client *c = gp_found_client(f, 158036);

	assert_non_null(c);
	assert_int_equal(c->inner_pid, 17);
	assert_memory_equal(c->container, "3f9a0123", 8);
	assert_string_equal(c->container_name, "trainer");
	assert_string_equal(c->pod, "");
	assert_string_equal(gp_found_client(f, 158200)->container_name, "llm");
	assert_int_equal(gp_found_client(f, 158100)->uid, 1000);

	f = look(*arg, (struct gp_discover_opts){ .root = recorded("kubernetes") });
	assert_int_equal(f->nclients, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(f->clients[i].pod, "4a1c5c0e-7f1e-4e0b-9a77-2f7f6a0d1e11");
		assert_string_equal(f->clients[i].container_name, "");
		assert_int_equal(f->clients[i].inner_pid, 1);
	}
	assert_memory_equal(f->clients[1].container, "3f9bfedc", 8);
}

static void a_command_name_brings_no_control_characters(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;

	put_queue(s, 5, 1, 17, 4096, 0);
	put(s, "proc/5/comm", "a\033[2J\nb\n");
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_string_equal(f->clients[0].name, "a?[2J?b");
}

/* While its name is being read, the process ends and another one gets its number. */
static void *change_hands(void *arg)
{
	struct state *s = arg;
	char old[128], now[128];
	FILE *comm = fopen(path_in(s, "proc/5/comm"), "w"); /* waits for the reader */

	snprintf(old, sizeof(old), "%s/proc/5", s->root);
	snprintf(now, sizeof(now), "%s/proc/old", s->root);
	if (!comm || rename(old, now) < 0)
		return NULL;
	put(s, "proc/5/status", "Uid:\t0\t0\t0\t0\n");
	fputs("mine\n", comm);
	fclose(comm);
	return s;
}

static void what_is_said_of_a_process_is_all_of_one_though_its_number_changes_hands(void **arg)
{
	struct state *s = *arg;
	const struct gp_found *f;
	pthread_t other;
	void *changed;

	put_queue(s, 5, 1, 17, 4096, 0);
	put(s, "proc/5/status", "Uid:\t1000\t1000\t1000\t1000\n");
	assert_int_equal(mkfifo(path_in(s, "proc/5/comm"), 0600), 0);
	assert_int_equal(pthread_create(&other, NULL, change_hands, s), 0);
	f = look(s, (struct gp_discover_opts){ 0 });
	assert_int_equal(pthread_join(other, &changed), 0);
	assert_non_null(changed);
	assert_string_equal(f->clients[0].name, "mine");
	assert_int_equal(f->clients[0].uid, 1000);
}

static void a_pid_in_a_container_is_found_by_name_or_id(void **arg)
{
	const char *root = recorded("docker");
	uint32_t pid = 0;

	(void)arg;
	assert_int_equal(gp_discover_container_pid(root, "trainer", 17, &pid), 0);
	assert_int_equal(pid, 158036);
	assert_int_equal(gp_discover_container_pid(root, "3f9a", 23, &pid), 0);
	assert_int_equal(pid, 158040);
	assert_int_equal(gp_discover_container_pid(root, "alias", 17, &pid), 0);
	assert_int_equal(pid, 158200);
	assert_int_equal(gp_discover_container_pid(root, "77ab", 17, &pid), 0);
	assert_int_equal(pid, 158200);
	pid = 1;
	assert_int_equal(gp_discover_container_pid(root, "3f9", 17, &pid), -ENOTUNIQ);
	assert_int_equal(gp_discover_container_pid(root, "3f9", 23, &pid),
			 -ENOTUNIQ); /* though one alone has a 23 */
	assert_int_equal(gp_discover_container_pid(root, "trainer", 99, &pid), -ENOENT);
	assert_int_equal(gp_discover_container_pid(root, "wrong", 17, &pid), -ENOENT);
	assert_int_equal(gp_discover_container_pid(root, "trap", 17, &pid), -ENOENT);
	assert_int_equal(gp_discover_container_pid("/nonexistent", "trainer", 17, &pid), -ENOENT);
	assert_int_equal(gp_discover_container_pid(root, "", 17, &pid), -EINVAL);
	assert_int_equal(pid, 1);
}

static void a_containers_name_goes_before_the_first_digits_of_anothers_id(void **arg)
{
	struct state *s = *arg;
	uint32_t pid = 0;
	char path[160];

	for (int i = 1; i <= 3; i++) {
		snprintf(path, sizeof(path), "sys/fs/cgroup/docker/%064d/cgroup.procs", i);
		put(s, path, "");
		snprintf(path, sizeof(path), "0::/docker/%064d\n", i);
		put(s, i == 1 ? "proc/101/cgroup" : i == 2 ? "proc/102/cgroup" : "proc/103/cgroup", path);
	}
	put(s, "proc/101/status", "NSpid:\t101\t17\n");
	put(s, "proc/102/status", "NSpid:\t102\t17\n");
	put(s, "proc/103/status", "NSpid:\t103\t17\n");
	snprintf(path, sizeof(path), "var/lib/docker/containers/%064d/config.v2.json", 2);
	put(s, path, "{\"Name\":\"/0000\"}");
	assert_int_equal(gp_discover_container_pid(s->root, "0000", 17, &pid), 0);
	assert_int_equal(pid, 102);
}

static void in_nested_namespaces_any_pid_inside_is_found_and_two_alike_are_refused(void **arg)
{
	struct state *s = *arg;
	uint32_t pid = 0;
	char cgroup[128], procs[128];

	snprintf(cgroup, sizeof(cgroup), "0::/docker/%064d\n", 7);
	snprintf(procs, sizeof(procs), "sys/fs/cgroup/docker/%064d/cgroup.procs", 7);
	put(s, procs, "");
	put(s, "proc/100/cgroup", cgroup);
	put(s, "proc/100/status", "NSpid:\t100\t30\t2\n");
	put(s, "proc/101/cgroup", cgroup);
	put(s, "proc/101/status", "NSpid:\t101\t2\n");
	put(s, "proc/102/cgroup", cgroup);
	put(s, "proc/102/status", "NSpid:\t102\n");
	put(s, "proc/103/cgroup", cgroup); /* ends while we look */
	assert_int_equal(gp_discover_container_pid(s->root, "0000", 30, &pid), 0);
	assert_int_equal(pid, 100);
	assert_int_equal(gp_discover_container_pid(s->root, "0000", 102, &pid), 0);
	assert_int_equal(pid, 102);
	assert_int_equal(gp_discover_container_pid(s->root, "0000", 2, &pid), -ENOTUNIQ);
}

#define ID16 "0123456789abcdef"
#define ID ID16 ID16 ID16 ID16

/* A process 5 with a queue, in a container with that id. */
static void put_contained(struct state *s)
{
	put_queue(s, 5, 1, 17, 4096, 0);
	put(s, "proc/5/status", "PPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t5\t1\n");
	put(s, "proc/5/cgroup", "0::/docker/" ID "\n");
	put(s, "sys/fs/cgroup/docker/" ID "/cgroup.procs", "");
}

static const char *container_name(struct state *s)
{
	return look(s, (struct gp_discover_opts){ 0 })->clients[0].container_name;
}

static void a_container_is_called_as_whoever_made_it_has_written_it_down(void **arg)
{
	static const struct {
		const char *file, *text, *conf, *conf_text, *name;
	} cases[] = {
		{ "var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/one\"}", NULL, NULL,
		  "one" },
		{ "data/d/containers/" ID "/config.v2.json", "{\"Name\":\"/two\"}", "etc/docker/daemon.json",
		  "{\"x\":{\"data-root\":\"/no\"},\"data-root\": \"/data/d\"}", "two" },
		{ "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		  "{\"process\":{\"io.kubernetes.cri.container-name\":\"no\"},\"annotations\":{"
		  "\"io.kubernetes.cri.container-name\":\"worker\",\"io.kubernetes.cri.sandbox-name\":\"train-0\"}}",
		  NULL, NULL, "train-0/worker" },
		{ "run/containers/storage/overlay-containers/" ID "/userdata/config.json",
		  "{\"annotations\":{\"io.kubernetes.pod.name\":\"serve-0\",\"io.kubernetes.container.name\":"
		  "\"llm\"}}",
		  NULL, NULL, "serve-0/llm" },
		{ "run/containerd/io.containerd.runtime.v2.task/default/" ID "/config.json",
		  "{\"annotations\":{\"nerdctl/name\":\"four\"}}", NULL, NULL, "four" },
		{ "var/lib/containers/storage/vfs-containers/containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"five\"]}]", NULL, NULL, "five" },
		{ "run/containers/storage/overlay-containers/volatile-containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"six\"]}]", NULL, NULL, "six" },
		{ "data/p/overlay-containers/containers.json", "[{\"id\":\"" ID "\",\"names\":[\"seven\"]}]",
		  "etc/containers/storage.conf",
		  "[storage]\n# graphroot = \"/no\"\n  graphroot = \"/data/p\" # ours\n", "seven" },
	};
	struct state *s = *arg;

	put_contained(s);
	assert_string_equal(container_name(s), "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(s, cases[i].file, cases[i].text);
		if (cases[i].conf)
			put(s, cases[i].conf, cases[i].conf_text);
		assert_string_equal(container_name(s), cases[i].name);
		assert_int_equal(remove(path_in(s, cases[i].file)), 0);
		if (cases[i].conf)
			assert_int_equal(remove(path_in(s, cases[i].conf)), 0);
	}
}

#define BUNDLE "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json"

/* A pod's container, all of whose names have so many characters. */
static const struct gp_found_client *named(struct state *s, int space, int pod, int name)
{
	char text[2048];

	snprintf(
		text, sizeof(text),
		"{\"annotations\":{\"io.kubernetes.cri.sandbox-namespace\":\"%0*d\","
		"\"io.kubernetes.cri.sandbox-name\":\"%0*d\",\"io.kubernetes.cri.container-name\":\"%0*d\"}}",
		space, 1, pod, 2, name, 3);
	put(s, BUNDLE, text);
	return look(s, (struct gp_discover_opts){ 0 })->clients;
}

static void a_pods_names_are_known_whole_as_long_as_kubernetes_lets_them_be_or_not_at_all(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_client *c;
	char whole[512];

	put_contained(s);
	c = named(s, 63, 253, 63);
	snprintf(whole, sizeof(whole), "%0253d/%063d", 2, 3);
	assert_string_equal(c->container_name, whole);
	snprintf(whole, sizeof(whole), "%063d", 1);
	assert_string_equal(c->kube_namespace, whole);
	assert_string_equal(named(s, 64, 1, 1)->container_name, "");
	assert_string_equal(named(s, 1, 254, 1)->container_name, "");
	assert_string_equal(named(s, 1, 1, 254)->container_name, "");
	assert_string_equal(named(s, 1, 1, 1)->container_name, "2/3");
}

static void all_processes_of_a_pods_container_have_its_names(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_client *c;

	put_contained(s);
	put_queue(s, 6, 1, 17, 4096, 0);
	put(s, "proc/6/cgroup", "0::/docker/" ID "\n");
	c = named(s, 1, 1, 1);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(c[i].container_name, "2/3");
		assert_string_equal(c[i].kube_namespace, "1");
	}
}

static void a_name_that_does_not_fit_is_none_whoever_tells_it(void **arg)
{
	static const struct {
		const char *file, *before, *behind;
	} cases[] = {
		{ "var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/", "\"}" },
		{ "var/lib/containers/storage/vfs-containers/containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"", "\"]}]" },
	};
	struct state *s = *arg;
	char text[1024];

	put_contained(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int length = 335; length <= 336; length++) {
			snprintf(text, sizeof(text), "%s%0*d%s", cases[i].before, length, 7, cases[i].behind);
			put(s, cases[i].file, text);
			assert_int_equal(strlen(container_name(s)), length == 335 ? 335 : 0);
		}
		assert_int_equal(remove(path_in(s, cases[i].file)), 0);
	}
}

static void a_name_in_a_file_that_others_may_write_is_none_and_a_pipe_in_its_place_stops_nobody(void **arg)
{
	static const char file[] = "var/lib/docker/containers/" ID "/config.v2.json";
	struct state *s = *arg;

	put_contained(s);
	put(s, file, "{\"Name\":\"/mine\"}");
	assert_string_equal(container_name(s), "mine");
	assert_int_equal(chmod(path_in(s, file), 0646), 0);
	assert_string_equal(container_name(s), "");
	assert_int_equal(chmod(path_in(s, file), 0664), 0);
	assert_string_equal(container_name(s), "");
	assert_int_equal(chmod(path_in(s, file), 0644), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(path_in(s, file), 65534, 0), 0);
		assert_string_equal(container_name(s), "");
	}
	assert_int_equal(remove(path_in(s, file)), 0);
	assert_int_equal(mkfifo(path_in(s, file), 0600), 0);
	assert_string_equal(container_name(s), "");
}

/* Its command line has zeros between the words. */
static void put_monitor(struct state *s, int pid, const char *id, const char *name, const char *status)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	file = fopen(path_in(s, path), "w");
	assert_non_null(file);
	fprintf(file, "/usr/bin/conmon%c--api-version%c1%c-c%c%s%c-u%cx%c-n%c%s%c", 0, 0, 0, 0, id, 0, 0, 0,
		0, name, 0);
	fclose(file);
	snprintf(path, sizeof(path), "proc/%d/comm", pid);
	put(s, path, "conmon\n");
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	put(s, path, status);
}

static void put_conmon(struct state *s, const char *status)
{
	put_monitor(s, 4, ID, "mine", status);
}

static void where_no_cgroup_tells_a_monitor_names_the_container_if_it_is_roots_or_the_readers(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_client *c;

	put_contained(s);
	put(s, "proc/5/cgroup", "0::/\n");
	put(s, "proc/5/status", "PPid:\t7\nUid:\t9\t9\t9\t9\nNSpid:\t5\t6\n");
	put(s, "proc/7/comm", "sh\n");
	put(s, "proc/7/status", "PPid:\t4\nUid:\t9\t9\t9\t9\nNSpid:\t7\t1\n");
	put_conmon(s, "PPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t4\n");
	c = look(s, (struct gp_discover_opts){ 0 })->clients;
	assert_string_equal(c->container, ID);
	assert_string_equal(c->container_name, "mine");
	put_conmon(s, "PPid:\t1\nUid:\t9\t9\t9\t9\nNSpid:\t4\n");
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->clients[0].container, "");
	put_conmon(s, "PPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t4\t2\n");
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->clients[0].container, "");
	put_conmon(s, "PPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t4\n");
	put(s, "proc/5/cgroup", "0::/docker/" ID "\n");
	assert_string_equal(container_name(s), "mine"); /* of a cgroup's container too, but of no other */
	put(s, "proc/5/cgroup", "0::/docker/" ID16 ID16 ID16 "fedcba9876543210\n");
	put(s, "sys/fs/cgroup/docker/" ID16 ID16 ID16 "fedcba9876543210/cgroup.procs", "");
	assert_string_equal(container_name(s), "");
	put(s, "proc/5/cgroup", "0::/\n");
	put_conmon(s, "PPid:\t4\nUid:\t0\t0\t0\t0\nNSpid:\t4\n"); /* its own parent: no end but ours */
	assert_string_equal(look(s, (struct gp_discover_opts){ 0 })->clients[0].container, ID);
}

static void of_a_container_in_a_container_the_outermost_monitor_counts(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_client *c;

	put_contained(s);
	put(s, "proc/5/cgroup", "0::/\n");
	put(s, "proc/5/status", "PPid:\t4\nUid:\t9\t9\t9\t9\nNSpid:\t5\t6\n");
	put_conmon(s, "PPid:\t3\nUid:\t0\t0\t0\t0\nNSpid:\t4\n");
	put_monitor(s, 3, ID16 ID16 ID16 "fedcba9876543210", "outer",
		    "PPid:\t1\nUid:\t0\t0\t0\t0\nNSpid:\t3\n");
	c = look(s, (struct gp_discover_opts){ 0 })->clients;
	assert_string_equal(c->container, ID16 ID16 ID16 "fedcba9876543210");
	assert_string_equal(c->container_name, "outer");
}

static void a_key_is_no_value_though_it_stands_where_one_should(void **arg)
{
	static const struct {
		const char *file, *text;
	} cases[] = {
		{ "var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":{\"no\":1},\"x\":\"no\"}" },
		{ "var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":5,\"no\" \n:\"no\"}" },
		{ BUNDLE, "{\"annotations\":{\"nerdctl/name\":7,\"no\":\"no\"}}" },
		{ "var/lib/containers/storage/vfs-containers/containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[{\"no\":1}]}]" },
	};
	struct state *s = *arg;

	put_contained(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put(s, cases[i].file, cases[i].text);
		assert_string_equal(container_name(s), "");
		assert_int_equal(remove(path_in(s, cases[i].file)), 0);
	}
}

static void a_name_that_is_no_text_is_none(void **arg)
{
	struct state *s = *arg;

	put_contained(s);
	put(s, "var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/serve\xc3\"}");
	assert_string_equal(container_name(s), "");
}

static void sources_and_kinds_have_names_and_numbers_nobody_knows_are_unknown(void **arg)
{
	(void)arg;
	assert_string_equal(gp_source_name(GP_SOURCE_SYSFS), "sysfs");
	assert_string_equal(gp_source_name(GP_SOURCE_MQDS), "debugfs mqds");
	assert_string_equal(gp_source_name(GP_SOURCE_RLS), "debugfs rls");
	assert_string_equal(gp_source_name(GP_SOURCE_INFERRED), "inferred");
	assert_string_equal(gp_source_name(GP_SOURCE_COUNT), "unknown");
	assert_string_equal(gp_kind_name(GP_KIND_COMPUTE), "compute");
	assert_string_equal(gp_kind_name(77), "unknown");
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_machine_recorded_with_the_stock_driver_is_known_queue_by_queue),
		TREE_TEST(devices_and_clients_of_that_machine_are_known),
		TREE_TEST(a_machine_of_eight_xccs_has_each_queue_once),
		TREE_TEST(of_one_process_alone_nothing_else_is_listed),
		TREE_TEST(annotated_text_gives_ids_and_the_device_by_its_pci_address),
		TREE_TEST(a_pci_address_that_partitions_share_names_no_device),
		TREE_TEST(text_and_hex_of_one_queue_become_one_queue),
		TREE_TEST(nvidias_gpus_are_known_by_their_address_in_its_order),
		TREE_TEST(what_a_file_says_now_counts_though_it_was_read_before),
		cmocka_unit_test(nvidias_driver_has_a_version_where_it_is_loaded),
		TREE_TEST(of_a_truncated_file_no_id_is_guessed_and_nobody_is_called_idle),
		TREE_TEST(without_debugfs_sysfs_alone_is_known_and_why_is_said),
		TREE_TEST(a_machine_without_the_driver_has_no_queues_and_that_is_no_error),
		TREE_TEST(a_process_without_queues_is_a_client_all_the_same),
		TREE_TEST(a_queue_that_goes_while_we_look_is_no_queue),
		TREE_TEST(attributes_that_are_no_numbers_are_unknown),
		TREE_TEST(an_id_is_certain_where_size_kind_and_device_leave_one_choice),
		TREE_TEST(among_queues_alike_ids_follow_the_doorbells_and_are_marked_inferred),
		TREE_TEST(among_sdma_queues_alike_ids_follow_their_age),
		TREE_TEST(where_the_counts_differ_no_id_is_given_and_nothing_is_lost),
		TREE_TEST(an_id_twice_in_a_file_is_two_queues_and_takes_one_entry_of_sysfs),
		TREE_TEST(no_run_list_means_idle_under_hws_and_nothing_under_mes_or_without_a_scheduler),
		TREE_TEST(a_run_lists_entry_with_anothers_mqd_is_another_queue),
		TREE_TEST(a_log_adds_the_runtimes_id_to_the_queue_with_its_ring),
		TREE_TEST(a_log_of_a_process_that_is_gone_is_all_there_is),
		TREE_TEST(without_debugfs_a_log_and_sysfs_are_joined_by_size_and_marked_inferred),
		TREE_TEST(a_log_written_in_a_container_is_the_containers_process),
		TREE_TEST(a_log_in_a_container_is_known_by_its_ring),
		TREE_TEST(a_log_that_cannot_be_read_is_an_error_and_so_is_a_flag_from_the_future),
		TREE_TEST(containers_and_pods_of_clients_are_known_with_their_names),
		TREE_TEST(a_command_name_brings_no_control_characters),
		TREE_TEST(what_is_said_of_a_process_is_all_of_one_though_its_number_changes_hands),
		cmocka_unit_test(a_pid_in_a_container_is_found_by_name_or_id),
		TREE_TEST(a_container_is_called_as_whoever_made_it_has_written_it_down),
		TREE_TEST(a_pods_names_are_known_whole_as_long_as_kubernetes_lets_them_be_or_not_at_all),
		TREE_TEST(all_processes_of_a_pods_container_have_its_names),
		TREE_TEST(a_name_that_does_not_fit_is_none_whoever_tells_it),
		TREE_TEST(a_name_that_is_no_text_is_none),
		TREE_TEST(a_key_is_no_value_though_it_stands_where_one_should),
		TREE_TEST(of_a_container_in_a_container_the_outermost_monitor_counts),
		TREE_TEST(
			a_name_in_a_file_that_others_may_write_is_none_and_a_pipe_in_its_place_stops_nobody),
		TREE_TEST(where_no_cgroup_tells_a_monitor_names_the_container_if_it_is_roots_or_the_readers),
		TREE_TEST(a_containers_name_goes_before_the_first_digits_of_anothers_id),
		TREE_TEST(in_nested_namespaces_any_pid_inside_is_found_and_two_alike_are_refused),
		cmocka_unit_test(sources_and_kinds_have_names_and_numbers_nobody_knows_are_unknown),
	};

	return cmocka_run_group_tests_name("discover", tests, NULL, NULL);
}
