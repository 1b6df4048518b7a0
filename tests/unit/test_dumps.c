// SPDX-License-Identifier: MIT
/* The parsers of src/discover/, each on text that is good, odd or hostile. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/mqd.h"
#include "discover/scan.h"
#include "unit.h"

#define TEXT_SIZE (1 << 20)

/* A text being written, and what a parser made of it. */
struct state {
	char *text;
	size_t len;
	struct gp_scan scan;
};

static int begin(void **arg)
{
	struct state *s = calloc(1, sizeof(*s));

	s->text = malloc(TEXT_SIZE);
	*arg = s;
	return 0;
}

static int end(void **arg)
{
	struct state *s = *arg;

	free(s->text);
	free(s->scan.devices.at);
	free(s->scan.clients.at);
	free(s->scan.mqds.at);
	free(s->scan.log.at);
	free(s->scan.run_list.at);
	free(s->scan.slots.at);
	free(s->scan.run_list_gpus.at);
	free(s->scan.slot_gpus.at);
	free(s);
	return 0;
}

__attribute__((format(printf, 2, 3))) static void put(struct state *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	s->len += (size_t)vsnprintf(s->text + s->len, TEXT_SIZE - s->len, format, args);
	va_end(args);
	assert_true(s->len < TEXT_SIZE);
}

/* As seq_hex_dump() does it, with so many words to a line. */
static void put_dump(struct state *s, const char *indent, const uint32_t *words, uint32_t n,
		     uint32_t per_line)
{
	for (uint32_t i = 0; i < n; i += per_line) {
		put(s, "%s%08x:", indent, i * 4);
		for (uint32_t k = i; k < i + per_line && k < n; k++)
			put(s, " %08x", words[k]);
		put(s, "\n");
	}
}

static void parse(struct state *s, int (*parser)(struct gp_lines *, struct gp_scan *))
{
	struct gp_lines in;

	gp_lines_memory(&in, s->text, s->len);
	assert_int_equal(parser(&in, &s->scan), 0);
}

static struct gp_seen *seen(struct gp_array *list, size_t i)
{
	assert_true(i < list->count);
	return (struct gp_seen *)list->at + i;
}

static const struct gp_found_source *source(struct state *s, enum gp_source which)
{
	return &s->scan.sources[which];
}

/* A compute MQD with a number of its own in every word we look at. */
static void fill_compute(uint32_t *w)
{
	memset(w, 0, MQD_SIZE);
	w[0] = 0xc0310800;
	w[0x200 / 4] = 0x003e3000;
	w[0x204 / 4] = 0x00007f00;
	w[0x208 / 4] = 1;
	w[0x214 / 4] = 2;
	w[0x218 / 4] = 11;
	w[0x220 / 4] = 0xcf9356d0;
	w[0x224 / 4] = 0x7f;
	w[0x22c / 4] = 0x93571000;
	w[0x230 / 4] = 0x7fcf;
	w[0x234 / 4] = 0x93572000;
	w[0x238 / 4] = 0x7fcf;
	w[0x23c / 4] = 0xd000201a;
	w[0x244 / 4] = 0x1401450b;
}

static void fill_sdma(uint32_t *w)
{
	memset(w, 0, SDMA_SIZE);
	w[0] = 0x1000 | 18 << 1;
	w[1] = 0xcf935600;
	w[2] = 0x7f;
	w[8] = 0x7fcf;
	w[9] = 0x11223344;
	w[22] = 0xa08 << 2;
	w[126] = 5;
}

static void a_compute_queue_of_the_stock_driver_gives_every_field(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];
	const struct gp_found_queue *q;

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 1);
	q = &seen(&s->scan.mqds, 0)->q;
	assert_int_equal(q->pid, 56);
	assert_int_equal(q->gpu_id, 0x96ab);
	assert_int_equal(q->kind, GP_KIND_COMPUTE);
	assert_true(q->mqd_address == 0x7f00003e3000);
	assert_true(q->ring == 0x7fcf9356d000);
	assert_true(q->rptr_address == 0x7fcf93571000);
	assert_true(q->wptr_address == 0x7fcf93572000);
	assert_int_equal(q->ring_size, 16384); /* 4 << (0xb + 1) */
	assert_int_equal(q->doorbell, 0x806);
	assert_int_equal(q->priority, 11);
	assert_int_equal(q->active, 1);
	assert_int_equal(q->from[GP_FIELD_ID], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->from[GP_FIELD_MAPPED], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->from[GP_FIELD_RING], GP_SOURCE_MQDS);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 0);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->truncated, 0);
	assert_int_equal(s->scan.clients.count, 1);
	assert_int_equal(((struct gp_found_client *)s->scan.clients.at)->pasid, 0x8000);
}

static void eight_dumps_of_eight_xccs_are_one_queue(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n");
	for (int queue = 0; queue < 2; queue++) {
		put(s, "  Compute queue on device 96ab\n");
		for (uint32_t xcc = 0; xcc < 8; xcc++) {
			words[0x200 / 4] = 0x003e3000 + xcc * 0x4000;
			put_dump(s, "    ", words, 512, 8);
		}
	}
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 2);
	assert_true(seen(&s->scan.mqds, 1)->q.mqd_address == 0x7f00003e3000);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 0);
}

static void an_sdma_queue_gives_its_fields_and_what_follows_its_dump_is_not_its_own(void **arg)
{
	struct state *s = *arg;
	uint32_t words[128];
	const struct gp_found_queue *q;

	fill_sdma(words);
	put(s, "Process 56 PASID 0x8000:\n  SDMA queue on device 96ab\n");
	put_dump(s, "    ", words, 128, 8);
	memset(words, 0xff, sizeof(words));
	for (int i = 0; i < 7; i++)
		put_dump(s, "    ", words, 128, 8);
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 1);
	q = &seen(&s->scan.mqds, 0)->q;
	assert_int_equal(q->kind, GP_KIND_SDMA);
	assert_true(q->ring == 0x7fcf93560000);
	assert_int_equal(q->ring_size, 4 << 18);
	assert_true(q->rptr_address == 0x7fcf11223344);
	assert_int_equal(q->doorbell, 0xa08);
	assert_int_equal(seen(&s->scan.mqds, 0)->engine, 5);
	assert_int_equal(q->from[GP_FIELD_PRIORITY], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->from[GP_FIELD_ACTIVE], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->from[GP_FIELD_WPTR], GP_SOURCE_UNKNOWN);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->truncated, 0);
}

static void lines_of_another_width_are_read_one_by_one(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, " ", words, 512, 4);
	parse(s, gp_mqds_parse);
	assert_true(seen(&s->scan.mqds, 0)->q.ring == 0x7fcf9356d000);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->truncated, 0);
}

static void a_line_missing_in_a_dump_leaves_only_its_own_fields_unknown(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];
	const struct gp_found_queue *q;
	char *line;

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	line = strstr(s->text, "    00000220:");
	memset(line + 4, 'z', 8);
	parse(s, gp_mqds_parse);
	q = &seen(&s->scan.mqds, 0)->q;
	assert_int_equal(q->from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->from[GP_FIELD_DOORBELL], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->priority, 11);
	assert_int_equal(q->ring_size, 16384);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 1);
}

static void lines_in_another_order_are_put_where_they_say(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];
	char *ring, *other;

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	ring = strstr(s->text, "    00000220:");
	other = strstr(s->text, "    000002a0:");
	for (ptrdiff_t i = 0, len = strchr(ring, '\n') - ring; i < len; i++) {
		char c = ring[i];

		ring[i] = other[i];
		other[i] = c;
	}
	parse(s, gp_mqds_parse);
	assert_true(seen(&s->scan.mqds, 0)->q.ring == 0x7fcf9356d000);
	assert_int_equal(seen(&s->scan.mqds, 0)->q.ring_size, 16384);
}

static void a_dump_that_is_no_mqd_gives_no_field(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	words[0] = 0xdeadbeef;
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	parse(s, gp_mqds_parse);
	assert_int_equal(seen(&s->scan.mqds, 0)->q.from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
	assert_int_equal(seen(&s->scan.mqds, 0)->q.from[GP_FIELD_GPU], GP_SOURCE_MQDS);
}

static void an_sdma_queue_of_gfx11_gives_no_field_because_its_words_lie_elsewhere(void **arg)
{
	struct state *s = *arg;
	struct gp_found_device *d = gp_array_add(&s->scan.devices, sizeof(*d));
	uint32_t words[128];

	d->gpu_id = 0x96ab;
	d->gfx_target = 110000;
	fill_sdma(words);
	put(s, "Process 56 PASID 0x8000:\n  SDMA queue on device 96ab\n");
	put_dump(s, "    ", words, 128, 8);
	parse(s, gp_mqds_parse);
	assert_int_equal(seen(&s->scan.mqds, 0)->q.from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
}

static void text_in_place_of_a_dump_is_read(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_queue *q;

	put(s, "Compute queue on device 0001:01:00.0\n    Queue ID: 1 (0x1)\n    Address: 0x7f5a00000000\n"
	       "    Process: pid 12345 pasid 0x8001\n    is active: yes\n    priority: 2\n");
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 1);
	q = &seen(&s->scan.mqds, 0)->q;
	assert_int_equal(q->queue_id, 1);
	assert_int_equal(q->from[GP_FIELD_ID], GP_SOURCE_MQDS);
	assert_true(q->ring == 0x7f5a00000000);
	assert_int_equal(q->pid, 12345);
	assert_int_equal(q->active, 1);
	assert_int_equal(q->from[GP_FIELD_ACTIVE], GP_SOURCE_MQDS);
	assert_int_equal(q->priority, 2);
	assert_true(seen(&s->scan.mqds, 0)->pci == (1 << 16 | 1 << 8));
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 0);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->truncated, 0);
}

static void text_beside_a_dump_wins_and_lines_nobody_knows_are_counted(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];
	const struct gp_found_queue *q;

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n    QUEUE ID: 4\n    Active: NO\n"
	       "    wave state: saved\n    priority: high\n\n");
	put_dump(s, "    ", words, 512, 8);
	parse(s, gp_mqds_parse);
	q = &seen(&s->scan.mqds, 0)->q;
	assert_int_equal(q->queue_id, 4);
	assert_int_equal(q->active, 0);
	assert_int_equal(q->priority, 11);
	assert_true(q->ring == 0x7fcf9356d000);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 2);
}

static void kinds_nobody_knows_are_skipped_with_their_dumps(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	put(s, "  DIQ on device 96ab\n");
	words[0x220 / 4] = 0;
	put_dump(s, "    ", words, 512, 8);
	put(s,
	    "  Bad user queue type 9 on device 96ab\n  Weird: Queue node with neither kernel nor user queue\n");
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 1);
	assert_true(seen(&s->scan.mqds, 0)->q.ring == 0x7fcf9356d000);
	assert_int_equal(source(s, GP_SOURCE_MQDS)->skipped, 1 + 64 + 2);
}

static void a_file_cut_anywhere_keeps_whole_numbers_and_says_that_it_is_cut(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];
	size_t whole;

	fill_compute(words);
	put(s, "Process 56 PASID 0x8000:\n  Compute queue on device 96ab\n");
	put_dump(s, "    ", words, 512, 8);
	whole = s->len;
	for (s->len = 1; s->len < whole; s->len++) {
		const struct gp_found_queue *q;

		s->scan.mqds.count = s->scan.clients.count = 0;
		memset(s->scan.sources, 0, sizeof(s->scan.sources));
		parse(s, gp_mqds_parse);
		/* "Process 56 PASID 0x8000:\n" is 25 long, and whole by itself. */
		assert_int_equal(source(s, GP_SOURCE_MQDS)->truncated, s->len != 25);
		if (!s->scan.mqds.count)
			continue;
		q = &seen(&s->scan.mqds, 0)->q;
		assert_true(!q->from[GP_FIELD_RING] || q->ring == 0x7fcf9356d000);
		assert_true(!q->from[GP_FIELD_RING_SIZE] || q->ring_size == 16384);
		assert_true(!q->mqd_address || q->mqd_address == 0x7f00003e3000);
		assert_int_equal(q->gpu_id, 0x96ab);
	}
}

static void of_one_process_alone_the_others_are_dropped(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	for (uint32_t pid = 55; pid < 58; pid++) {
		put(s, "Process %u PASID 0x8000:\n  Compute queue on device 96ab\n", pid);
		put_dump(s, "    ", words, 512, 8);
	}
	s->scan.pid = 56;
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 1);
	assert_int_equal(seen(&s->scan.mqds, 0)->q.pid, 56);
	assert_int_equal(s->scan.clients.count, 1);
}

static void hostile_lines_are_no_queues(void **arg)
{
	struct state *s = *arg;

	put(s, "    00000000: c0310800\n");
	put(s,
	    "Process 99999999999999999999 PASID 0x1:\nProcess 4294967296 PASID 0x1:\nProcess 1 PASID oops\n");
	put(s,
	    "  Compute queue on device unknown\n    ffffffe0: 00000000 00000000\n    00000804: 00000000\n");
	put(s,
	    "  Compute queue on device 123456789\n    Queue ID: 4294967296\n    Address: 0x11112222333344445\n");
	put(s, "  Compute queue on device 0001:ff:20.0\n    :\n    Process: pid -1\n");
	parse(s, gp_mqds_parse);
	assert_int_equal(s->scan.mqds.count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(seen(&s->scan.mqds, i)->q.pid, 0);
		assert_int_equal(seen(&s->scan.mqds, i)->q.from[GP_FIELD_GPU], GP_SOURCE_UNKNOWN);
		assert_int_equal(seen(&s->scan.mqds, i)->q.from[GP_FIELD_ID], GP_SOURCE_UNKNOWN);
		assert_int_equal(seen(&s->scan.mqds, i)->q.from[GP_FIELD_RING], GP_SOURCE_UNKNOWN);
		assert_true(seen(&s->scan.mqds, i)->pci == GP_NO_PCI);
	}
	assert_int_equal(s->scan.clients.count, 0);
}

static const char *const run_list =
	"Node 1, gpu_id 96ab:\n"
	"  00000000: c013a100 14008000 00001001 00000000 00010002 00001118 ffffbf00 000000ff\n"
	"  00000020: ffffbf18 000000ff 00000000 00000000 00000000 01000080 00000000 00000000\n"
	"  00000040: 00000000 00000000 00000000 00000000 00000000 c005a200 20000010 00002018\n"
	"  00000060: 003e3000 00007f00 93572000 00007fcf c005a200 20000010 00002010 003de000\n"
	"  00000080: 00007f00 94ba7000 00007fcf\n"
	"Node 2, gpu_id 12:\n"
	"  No active runlist\n";

static void a_run_list_names_its_queues_though_packets_cross_lines(void **arg)
{
	struct state *s = *arg;
	const struct gp_mapping *m;

	put(s, "%s", run_list);
	parse(s, gp_rls_parse);
	assert_int_equal(s->scan.run_list.count, 2);
	m = s->scan.run_list.at;
	assert_int_equal(m[0].gpu_id, 0x96ab);
	assert_int_equal(m[0].doorbell, 0x806);
	assert_true(m[0].mqd == 0x7f00003e3000);
	assert_true(m[0].wptr == 0x7fcf93572000);
	assert_true(m[1].mqd == 0x7f00003de000);
	assert_int_equal(s->scan.run_list_gpus.count, 2);
	assert_int_equal(source(s, GP_SOURCE_RLS)->skipped, 0);
	assert_int_equal(source(s, GP_SOURCE_RLS)->truncated, 0);
}

static void a_run_list_cut_short_does_not_say_who_is_not_in_it(void **arg)
{
	struct state *s = *arg;

	put(s, "%s", run_list);
	s->len = (size_t)(strstr(s->text, "  00000080") - s->text);
	parse(s, gp_rls_parse);
	assert_int_equal(s->scan.run_list.count, 1);
	assert_int_equal(s->scan.run_list_gpus.count, 0);
	assert_int_equal(source(s, GP_SOURCE_RLS)->truncated, 1);
}

static void what_is_no_packet_ends_a_run_list_but_not_the_next_one(void **arg)
{
	struct state *s = *arg;

	put(s,
	    "Node 1, gpu_id 11:\n  00000000: 12345678 c005a200 20000010 00002018 003e3000 00007f00 93572000 00007fcf\n");
	put(s, "  00000020: c005a200 20000010 00002018 003e3000 00007f00 93572000 00007fcf\n");
	put(s,
	    "Node 2, gpu_id 12:\n  00000000: c005a200 20000010 00002018 003e3000 00007f00 93572000 00007fcf\n");
	parse(s, gp_rls_parse);
	assert_int_equal(s->scan.run_list.count, 1);
	assert_int_equal(((struct gp_mapping *)s->scan.run_list.at)->gpu_id, 0x12);
	assert_int_equal(s->scan.run_list_gpus.count, 1);
	assert_int_equal(*(uint32_t *)s->scan.run_list_gpus.at, 0x12);
	assert_int_equal(source(s, GP_SOURCE_RLS)->skipped, 2);
}

static void a_line_missing_in_a_run_list_loses_the_rest_of_it(void **arg)
{
	struct state *s = *arg;

	put(s, "Node 1, gpu_id 11:\n");
	for (uint32_t line = 0; line < 3;
	     line++) /* each a packet of eight words, so that all but the offset looks well */
		if (line != 1)
			put(s,
			    "  %08x: c006a200 20000010 00002018 003e3000 00007f00 93572000 00007fcf 00000000\n",
			    line * 32);
	parse(s, gp_rls_parse);
	assert_int_equal(s->scan.run_list.count, 1);
	assert_int_equal(s->scan.run_list_gpus.count, 0);
	assert_int_equal(source(s, GP_SOURCE_RLS)->truncated, 1);
}

static void slots_in_use_are_told_from_empty_ones(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512], none[56] = { 0 };
	const struct gp_mapping *m;

	fill_compute(words);
	put(s, "Node 1, gpu_id 96ab:\n   Inst 0, HIQ on MEC 2 Pipe 0 Queue 0\n");
	put_dump(s, "    ", words + 128, 56, 8);
	put(s, " Inst 0,  CP Pipe 1, Queue 0\n");
	put_dump(s, "    ", none, 56, 8);
	put(s, " Inst 0,  CP Pipe 1, Queue 1\n");
	put_dump(s, "    ", words + 128, 56, 8);
	put(s, "  SDMA Engine 0, RLC 0\n");
	put_dump(s, "    ", none, 44, 8);
	fill_sdma(words);
	words[0] |= 1;
	put(s, "  SDMA Engine 0, RLC 1\n");
	put_dump(s, "    ", words, 44, 8);
	put(s, "Node 2, gpu_id 12:\n Device is stopped\n");
	parse(s, gp_hqds_parse);
	assert_int_equal(s->scan.slots.count, 2);
	m = s->scan.slots.at;
	assert_int_equal(m[0].gpu_id, 0x96ab);
	assert_true(m[0].mqd == 0x7f00003e3000);
	assert_true(m[0].ring == 0x7fcf9356d000);
	assert_true(m[1].ring == 0x7fcf93560000);
	assert_int_equal(s->scan.slot_gpus.count, 2);
	assert_int_equal(source(s, GP_SOURCE_HQDS)->skipped, 0);
	assert_int_equal(source(s, GP_SOURCE_HQDS)->truncated, 0);
}

static void slots_before_any_device_and_cut_ones_are_nobodys(void **arg)
{
	struct state *s = *arg;
	uint32_t words[512];

	fill_compute(words);
	put(s, " Inst 0,  CP Pipe 1, Queue 1\n");
	put_dump(s, "    ", words + 128, 56, 8);
	put(s, "Node 1, gpu_id 96ab:\n Inst 0,  CP Pipe 1, Queue 1\n");
	put_dump(s, "    ", words + 128, 8, 8);
	parse(s, gp_hqds_parse);
	assert_int_equal(s->scan.slots.count, 0);
	assert_int_equal(s->scan.slot_gpus.count, 0);
	assert_int_equal(source(s, GP_SOURCE_HQDS)->truncated, 1);
}

static void a_log_of_rocm_7_gives_ring_size_priority_and_the_runtimes_id(void **arg)
{
	struct state *s = *arg;
	const struct gp_found_queue *q;

	put(s,
	    ":3:rocdevice.cpp            :3118: 3326522300 us: [pid:2539  tid: 0x7fffd49786c0] Created SWq=0x7fffe01ac000 to "
	    "map on HWq=0x7fffd1400000 with size 16384 with priority 2, cooperative: 0\n");
	put(s,
	    ":3:rocdevice.cpp            :3197: 3326522331 us: [pid:2539  tid: 0x7fffd49786c0] acquireQueue refCount: "
	    "0x7fffd1400000 (1)\n");
	put(s,
	    ":4:rocvirtual.cpp           :906 : 3326522400 us: [pid:2539  tid: 0x7fffd49786c0] SWq=0x7fffe01ac000, "
	    "HWq=0x7fffd1400000, id=3, Dispatch Header = 0x1502 (type=2, barrier=1, acquire=2, release=2), setup=3\n");
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 1);
	q = &seen(&s->scan.log, 0)->q;
	assert_int_equal(q->pid, 2539);
	assert_true(q->ring == 0x7fffd1400000);
	assert_int_equal(q->ring_size, 16384 * 64);
	assert_int_equal(q->priority, 11);
	assert_int_equal(q->runtime_id, 3);
	assert_int_equal(q->from[GP_FIELD_RUNTIME_ID], GP_SOURCE_LOG);
	assert_int_equal(q->from[GP_FIELD_ID], GP_SOURCE_UNKNOWN);
	assert_int_equal(q->kind, GP_KIND_COMPUTE);
	assert_int_equal(source(s, GP_SOURCE_LOG)->skipped, 0);
}

static void the_runtimes_three_priorities_are_the_drivers_0_7_and_11(void **arg)
{
	static const uint32_t kfd[] = { 0, 7, 11 };
	struct state *s = *arg;

	for (int i = 0; i < 4; i++)
		put(s,
		    "Created SWq=0x1%d000 to map on HWq=0x2%d000 with size 64 with priority %d, cooperative: 0\n",
		    i, i, i);
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 4);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(seen(&s->scan.log, i)->q.priority, kfd[i]);
	assert_int_equal(seen(&s->scan.log, 3)->q.from[GP_FIELD_PRIORITY], GP_SOURCE_UNKNOWN);
}

static void logs_of_rocm_5_put_the_pid_elsewhere_and_have_no_id(void **arg)
{
	struct state *s = *arg;

	put(s,
	    ":3:rocdevice.cpp            :2896: 221750333436 us: 1255284: [tid:0x7fcc46391bc0] created hardware queue "
	    "0x7fcc3566a000 with size 16384 with priority 1, cooperative: 0\n");
	put(s,
	    ":4:rocvirtual.cpp           :856 : 221750333500 us: 1255284: [tid:0x7fcc46391bc0] HWq=0x7fcc31000000, Dispatch "
	    "Header = 0xb02 (type=2, barrier=1, acquire=1, release=1), setup=3\n");
	put(s, ":4:rocvirtual.cpp           :856 : 221750333500 us: HWq=0x7fcc32000000, id=7, Barrier\n");
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 2);
	assert_int_equal(seen(&s->scan.log, 0)->q.pid, 1255284);
	assert_true(seen(&s->scan.log, 0)->q.ring == 0x7fcc31000000);
	assert_int_equal(seen(&s->scan.log, 0)->q.from[GP_FIELD_RUNTIME_ID], GP_SOURCE_UNKNOWN);
	assert_int_equal(seen(&s->scan.log, 1)->q.pid, 0);
	assert_int_equal(seen(&s->scan.log, 1)->q.runtime_id, 7);
}

static void a_deleted_queue_is_gone_by_its_ring_or_its_swq_until_it_is_created_again(void **arg)
{
	struct state *s = *arg;

	put(s,
	    "[pid:5 tid:1] Created SWq=0x1000 to map on HWq=0x20000 with size 64 with priority 1, cooperative: 0\n"
	    "[pid:5 tid:1] Created SWq=0x2000 to map on HWq=0x30000 with size 64 with priority 1, cooperative: 0\n"
	    "[pid:5 tid:1] Created SWq=0x3000 to map on HWq=0x40000 with size 64 with priority 1, cooperative: 0\n"
	    "[pid:5 tid:1] SWq=0x3000, HWq=0x40000, id=2, Dispatch\n"
	    "[pid:5 tid:1] Deleting hardware queue 0x20000 with refCount 0\n"
	    "[pid:6 tid:1] Deleting hardware queue 0x30000 with refCount 0\n"
	    "[pid:5 tid:1] deleting hardware queue 0x3000 with refCount 0\n");
	parse(s, gp_log_parse);
	assert_int_equal(seen(&s->scan.log, 0)->gone, 1);
	assert_int_equal(seen(&s->scan.log, 1)->gone, 0);
	assert_int_equal(seen(&s->scan.log, 2)->gone, 1);
	s->len = 0;
	put(s,
	    "[pid:5 tid:1] Created SWq=0x3000 to map on HWq=0x40000 with size 128 with priority 0, cooperative: 0\n");
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 3);
	assert_int_equal(seen(&s->scan.log, 2)->gone, 0);
	assert_int_equal(seen(&s->scan.log, 2)->q.ring_size, 128 * 64);
	assert_int_equal(seen(&s->scan.log, 2)->q.from[GP_FIELD_RUNTIME_ID], GP_SOURCE_UNKNOWN);
}

static void the_same_ring_of_two_processes_is_two_queues(void **arg)
{
	struct state *s = *arg;

	put(s, "[pid:5 tid:1] SWq=0x1, HWq=0x20000, id=1, x\n[pid:6 tid:1] SWq=0x1, HWq=0x20000, id=2, x\n"
	       "[pid:5 tid:1] SWq=0x1, HWq=0x20000, id=1, x\n");
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 2);
	assert_int_equal(seen(&s->scan.log, 1)->q.runtime_id, 2);
}

static void log_lines_that_only_look_like_queues_are_counted_and_nothing_else(void **arg)
{
	struct state *s = *arg;

	put(s, "HWq=\nHWq=0x\nHWq=zzz\nHWq=0x11112222333344445\nHWq=0x0\nDeleting hardware queue \n"
	       "ShaderName : void f<SWq>\n");
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 0);
	assert_int_equal(source(s, GP_SOURCE_LOG)->skipped, 6);
}

static void a_log_with_endlessly_many_queues_is_read_to_a_limit(void **arg)
{
	struct state *s = *arg;

	for (int i = 1; i < 4000; i++)
		put(s, "HWq=0x%x000, id=1\n", i);
	parse(s, gp_log_parse);
	assert_int_equal(s->scan.log.count, 2048);
	assert_int_equal(source(s, GP_SOURCE_LOG)->skipped, 3999 - 2048);
}

static void a_line_longer_than_the_buffer_is_dropped_and_the_next_is_read(void **arg)
{
	struct state *s = *arg;
	FILE *file = tmpfile();
	struct gp_span line;
	struct gp_lines in;

	(void)s;
	fputs("first\n", file);
	for (int i = 0; i < 3000000; i++)
		fputc('x', file);
	fputs("\nlast\nno newline", file);
	fflush(file);
	rewind(file);
	assert_int_equal(gp_lines_open(&in, dup(fileno(file))), 0);
	assert_int_equal(gp_lines_next(&in, &line), 1);
	assert_memory_equal(line.at, "first", 5);
	assert_int_equal(gp_lines_next(&in, &line), 1);
	assert_int_equal(gp_span_len(&line), 4);
	assert_memory_equal(line.at, "last", 4);
	assert_int_equal(gp_lines_next(&in, &line), 0);
	assert_int_equal(in.dropped, 1);
	assert_int_equal(in.partial, 1);
	gp_lines_close(&in);
	fclose(file);
}

static void a_number_is_taken_only_if_it_fits(void **arg)
{
	struct gp_span s = gp_span_of("18446744073709551615");
	uint64_t value = 0;
	uint32_t small;

	(void)arg;
	assert_int_equal(gp_span_decimal(&s, &value), 1);
	assert_true(value == UINT64_MAX);
	s = gp_span_of("18446744073709551616");
	assert_int_equal(gp_span_decimal(&s, &value), 0);
	s = gp_span_of("0x1ffffffff");
	assert_int_equal(gp_span_u32(&s, &small), 0);
	assert_int_equal(*s.at, '0');
	s = gp_span_of("0x");
	assert_int_equal(gp_span_hex(&s, &value), 0);
	s = gp_span_of("7f");
	assert_int_equal(gp_span_hex(&s, &value), 1);
	assert_int_equal(value, 0x7f);
}

static void the_pids_of_all_namespaces_are_read_from_status(void **arg)
{
	static const char text[] = "Name:\tx\nNSpid:\t158036\t17\t3\nNSpgid:\t1\n";
	uint32_t pids[4];

	(void)arg;
	assert_int_equal(gp_status_pids(text, strlen(text), pids, 4), 3);
	assert_int_equal(pids[0], 158036);
	assert_int_equal(pids[2], 3);
	assert_int_equal(gp_status_pids(text, strlen(text), pids, 2), 2);
	assert_int_equal(gp_status_pids("NSpid:", 6, pids, 4), 0);
	assert_int_equal(gp_status_pids("Pid:\t1\n", 7, pids, 4), 0);
}

static void names_of_containers_are_found_in_json_and_nowhere_else_in_it(void **arg)
{
	static const char docker[] =
		"{\"A\": {\"Name\": \"/inner\"}, \"B\": \"Name\", \"C\": [\"\\\"Name\\\":\\\"/x\\\"\"], "
		"\"Name\" : \"/trainer\"}";
	static const char podman[] =
		"[{\"id\":\"aa\",\"flags\":{\"id\":\"zz\",\"names\":[\"no\"]},\"names\":[\"one\",\"uno\"]},"
		"{\"names\":[\"two\"],\"id\":\"bb\"},{\"id\":\"cc\"}]";
	struct gp_span s;

	(void)arg;
	assert_int_equal(gp_docker_name(docker, strlen(docker), &s), 1);
	assert_int_equal(gp_span_len(&s), 7);
	assert_memory_equal(s.at, "trainer", 7);
	assert_int_equal(gp_docker_name("{\"Name\":\"", 9, &s), 0);
	assert_int_equal(gp_docker_name("{\"Name\":7,\"x\":\"y\"}", 18, &s), 0);

	assert_int_equal(gp_podman_find(podman, strlen(podman), NULL, "uno", &s), 1);
	assert_memory_equal(s.at, "aa", 2);
	assert_int_equal(gp_podman_find(podman, strlen(podman), NULL, "two", &s), 1);
	assert_memory_equal(s.at, "bb", 2);
	assert_int_equal(gp_podman_find(podman, strlen(podman), "aa", NULL, &s), 1);
	assert_memory_equal(s.at, "one", 3);
	assert_int_equal(gp_podman_find(podman, strlen(podman), "cc", NULL, &s), 0);
	assert_int_equal(gp_podman_find(podman, strlen(podman), NULL, "no", &s), 0);
	assert_int_equal(gp_podman_find(podman, strlen(podman) / 2, NULL, "two", &s), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_compute_queue_of_the_stock_driver_gives_every_field, begin,
						end),
		cmocka_unit_test_setup_teardown(eight_dumps_of_eight_xccs_are_one_queue, begin, end),
		cmocka_unit_test_setup_teardown(
			an_sdma_queue_gives_its_fields_and_what_follows_its_dump_is_not_its_own, begin, end),
		cmocka_unit_test_setup_teardown(lines_of_another_width_are_read_one_by_one, begin, end),
		cmocka_unit_test_setup_teardown(a_line_missing_in_a_dump_leaves_only_its_own_fields_unknown,
						begin, end),
		cmocka_unit_test_setup_teardown(lines_in_another_order_are_put_where_they_say, begin, end),
		cmocka_unit_test_setup_teardown(a_dump_that_is_no_mqd_gives_no_field, begin, end),
		cmocka_unit_test_setup_teardown(
			an_sdma_queue_of_gfx11_gives_no_field_because_its_words_lie_elsewhere, begin, end),
		cmocka_unit_test_setup_teardown(text_in_place_of_a_dump_is_read, begin, end),
		cmocka_unit_test_setup_teardown(text_beside_a_dump_wins_and_lines_nobody_knows_are_counted,
						begin, end),
		cmocka_unit_test_setup_teardown(kinds_nobody_knows_are_skipped_with_their_dumps, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_cut_anywhere_keeps_whole_numbers_and_says_that_it_is_cut, begin, end),
		cmocka_unit_test_setup_teardown(of_one_process_alone_the_others_are_dropped, begin, end),
		cmocka_unit_test_setup_teardown(hostile_lines_are_no_queues, begin, end),
		cmocka_unit_test_setup_teardown(a_run_list_names_its_queues_though_packets_cross_lines, begin,
						end),
		cmocka_unit_test_setup_teardown(a_run_list_cut_short_does_not_say_who_is_not_in_it, begin,
						end),
		cmocka_unit_test_setup_teardown(what_is_no_packet_ends_a_run_list_but_not_the_next_one, begin,
						end),
		cmocka_unit_test_setup_teardown(a_line_missing_in_a_run_list_loses_the_rest_of_it, begin,
						end),
		cmocka_unit_test_setup_teardown(slots_in_use_are_told_from_empty_ones, begin, end),
		cmocka_unit_test_setup_teardown(slots_before_any_device_and_cut_ones_are_nobodys, begin, end),
		cmocka_unit_test_setup_teardown(a_log_of_rocm_7_gives_ring_size_priority_and_the_runtimes_id,
						begin, end),
		cmocka_unit_test_setup_teardown(the_runtimes_three_priorities_are_the_drivers_0_7_and_11,
						begin, end),
		cmocka_unit_test_setup_teardown(logs_of_rocm_5_put_the_pid_elsewhere_and_have_no_id, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_deleted_queue_is_gone_by_its_ring_or_its_swq_until_it_is_created_again, begin, end),
		cmocka_unit_test_setup_teardown(the_same_ring_of_two_processes_is_two_queues, begin, end),
		cmocka_unit_test_setup_teardown(
			log_lines_that_only_look_like_queues_are_counted_and_nothing_else, begin, end),
		cmocka_unit_test_setup_teardown(a_log_with_endlessly_many_queues_is_read_to_a_limit, begin,
						end),
		cmocka_unit_test_setup_teardown(a_line_longer_than_the_buffer_is_dropped_and_the_next_is_read,
						begin, end),
		cmocka_unit_test(a_number_is_taken_only_if_it_fits),
		cmocka_unit_test(the_pids_of_all_namespaces_are_read_from_status),
		cmocka_unit_test(names_of_containers_are_found_in_json_and_nowhere_else_in_it),
	};

	return cmocka_run_group_tests_name("dumps", tests, NULL, NULL);
}
