// SPDX-License-Identifier: MIT
/* Packets are written here by hand, byte by byte: what the code encodes is never taken as right. */
#include "unit.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

#define HEADER 16
#define ITEMS_FIXED (HEADER + 8 + 8 + 4 * 4 + 192)
#define STRIDED_FIXED (ITEMS_FIXED + 4) /* with the place of the items after the header */

static struct gp_msg msg, got;
static unsigned char packet[GP_WIRE_MOST_BYTES + 64];

static void put(unsigned char *at, int bytes, uint64_t value)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

/* An empty message of that size, all fields zero. */
static size_t blank(uint32_t type, size_t size)
{
	memset(packet, 0, sizeof(packet));
	put(packet, 4, size);
	put(packet + 4, 2, type);
	put(packet + 6, 2, 1);
	put(packet + 12, 4, 77);
	return size;
}

static size_t with_items(uint32_t type, uint32_t n)
{
	size_t size = blank(type, ITEMS_FIXED + (size_t)n * 24);

	put(packet + HEADER + 28, 4, n);
	return size;
}

/* Items that say where they are; more: bytes that the fields, and each item, have more than today. */
static size_t with_strides(uint32_t type, uint32_t n, size_t more_fields, size_t more_item)
{
	size_t offset = STRIDED_FIXED + more_fields, stride = 24 + more_item;
	size_t size = blank(type, offset + n * stride);

	put(packet + 8, 4, GP_WIRE_STRIDES);
	put(packet + HEADER, 2, offset);
	put(packet + HEADER + 2, 2, stride);
	put(packet + HEADER + 4 + 28, 4, n);
	return size;
}

static int decode(size_t size)
{
	/* Of its own, so that a byte too far is seen by the tools that look for it. */
	unsigned char *exact = malloc(size ? size : 1);
	int r;

	memcpy(exact, packet, size);
	memset(&got, 0xa5, sizeof(got));
	r = gp_wire_decode(exact, size, &got);
	free(exact);
	return r;
}

static void refused(size_t size, int why)
{
	struct gp_msg before;

	memset(&before, 0xa5, sizeof(before));
	assert_int_equal(decode(size), why);
	assert_memory_equal(&got, &before, sizeof(got));
}

static void hello_is_laid_out_as_the_protocol_says(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, HEADER + 16 + 32 + 64);
	put(packet + 16, 4, GP_ROLE_AGENT);
	put(packet + 20, 4, 5);
	put(packet + 24, 4, 4242);
	put(packet + 28, 4, GP_CLASS_OFFLINE);
	memcpy(packet + 32, "train.py", 8);
	memcpy(packet + 64, "OFFLINE_AI", 10);
	assert_int_equal(decode(128), 0);
	assert_int_equal(got.type, GP_MSG_HELLO);
	assert_int_equal(got.serial, 77);
	assert_int_equal(got.hello.role, GP_ROLE_AGENT);
	assert_int_equal(got.hello.ways, GP_KFD_WAY_UPDATE | GP_KFD_WAY_PRIVATE);
	assert_int_equal(got.hello.pid, 4242);
	assert_int_equal(got.hello.seen, GP_CLASS_OFFLINE);
	assert_string_equal(got.hello.name, "train.py");
	assert_string_equal(got.hello.tag, "OFFLINE_AI");
}

static void encoding_writes_the_bytes_that_the_protocol_says(void **state)
{
	unsigned char out[256];

	(void)state;
	blank(GP_MSG_QUEUE, HEADER + 3 * 8 + 6 * 4);
	put(packet + 16, 8, 0x1122334455667788);
	put(packet + 24, 8, 0x7f0000001000);
	put(packet + 32, 8, 65536);
	put(packet + 40, 4, 3);
	put(packet + 44, 4, 38571);
	put(packet + 48, 4, GP_KIND_COMPUTE);
	put(packet + 52, 4, 7);
	put(packet + 56, 4, 100);
	put(packet + 60, 4, 1);
	memset(&msg, 0, sizeof(msg));
	msg.type = GP_MSG_QUEUE;
	msg.serial = 77;
	msg.queue = (struct gp_msg_queue){ .queue = 0x1122334455667788,
					   .ring = 0x7f0000001000,
					   .ring_size = 65536,
					   .queue_id = 3,
					   .gpu_id = 38571,
					   .kind = GP_KIND_COMPUTE,
					   .priority = 7,
					   .percent = 100,
					   .stopped = 1 };
	assert_int_equal(gp_wire_encode(&msg, 0, out, sizeof(out)), 64);
	assert_memory_equal(out, packet, 64);
}

static void items_follow_the_text_and_a_status_keeps_its_sign(void **state)
{
	size_t size = with_items(GP_MSG_RESULT, 2);
	unsigned char *second = packet + ITEMS_FIXED + 24;

	(void)state;
	put(packet + 16, 8, 3000000000);
	put(packet + 32, 4, GP_KFD_WAY_DBG);
	memcpy(packet + 48, "used update", 11);
	put(second, 8, 9);
	put(second + 8, 4, GP_STOP);
	put(second + 12, 4, (uint32_t)-EPERM);
	put(second + 16, 8, 123456789);
	assert_int_equal(decode(size), 0);
	assert_int_equal(got.items.n, 2);
	assert_int_equal(got.items.lease_ns, 3000000000);
	assert_int_equal(got.items.way, GP_KFD_WAY_DBG);
	assert_string_equal(got.items.text, "used update");
	assert_int_equal(got.item[1].queue, 9);
	assert_int_equal(got.item[1].want, GP_STOP);
	assert_int_equal(got.item[1].status, -EPERM);
	assert_int_equal(got.item[1].latency_ns, 123456789);
}

static bool has_items(uint32_t type)
{
	return type == GP_MSG_WANTS || type == GP_MSG_DONE || type == GP_MSG_HOLD || type == GP_MSG_RELEASE ||
	       type == GP_MSG_RESULT;
}

static void fill_items(struct gp_msg *m, uint32_t n)
{
	m->items = (struct gp_msg_items){ .way = GP_KFD_WAY_UPDATE, .n = n, .text = "as asked" };
	for (uint32_t i = 0; i < n; i++)
		m->item[i] = (struct gp_wire_item){ i, i % 3, -(int)i, 1ull << i % 64 };
}

static void fill_infos(struct gp_msg *m, uint32_t type)
{
	if (type == GP_MSG_DEVICE) {
		m->device = (struct gp_device_info){ .size = sizeof(m->device),
						     .name = "gfx942",
						     .caps = 3,
						     .gpu_id = 47,
						     .pci = "0000:c1:00.0",
						     .instances = 7 };
		m->device_key[0] = UINT64_MAX;
		m->device_key[1] = 5;
	} else if (type == GP_MSG_QUEUE_INFO) {
		m->info = (struct gp_queue_info){ .size = sizeof(m->info), .queue = 8, .rule = "no rule" };
		m->info.ring = UINT64_MAX;
		m->info.local_pid = 17;
	} else if (type == GP_MSG_CLIENT_INFO) {
		m->client_info = (struct gp_client_info){
			.size = sizeof(m->client_info), .client = 7, .state = GP_CLIENT_HELD, .resuming = 3
		};
	} else if (type == GP_MSG_STATS_INFO) {
		m->stats_info = (struct gp_stats){ .size = sizeof(m->stats_info),
						   .preemptions = 1,
						   .reason = "why",
						   .device = 2,
						   .ejection = "it looped",
						   .slice_failures = 3,
						   .has_details = 1 };
		m->stats_info.reason_age_ns = 5;
	} else if (type == GP_MSG_EVENT) {
		m->event = (struct gp_event){ .size = sizeof(m->event),
					      .number = UINT64_MAX,
					      .kind = GP_EVENT_LOST,
					      .status = -EIO,
					      .tried = 1 + GP_ATTEMPT_RESUME };
	}
}

/* Something in the last field of each, so that all are written. */
static void fill(struct gp_msg *m, uint32_t type)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	m->serial = 5;
	fill_infos(m, type);
	if (has_items(type))
		fill_items(m, 3);
	else if (type == GP_MSG_HELLO)
		m->hello = (struct gp_msg_hello){ .role = 1, .features = 2, .weight = 3, .slo_ns = 4 };
	else if (type == GP_MSG_WELCOME)
		m->welcome = (struct gp_msg_welcome){ .lease_ns = 1, .features = UINT32_MAX };
	else if (type == GP_MSG_ERROR)
		m->error.status = -EPERM;
	else if (type == GP_MSG_HINT)
		m->hint = (struct gp_msg_hint){ .number = 9, .what = GP_HINT_END, .device = GP_ALL_DEVICES };
	else if (type == GP_MSG_POLICY)
		m->policy = (struct gp_msg_policy){ .device = 1, .name = "fair" };
	else if (type == GP_MSG_STATS)
		m->stats.device = 1;
	else if (type == GP_MSG_EVENTS)
		m->events =
			(struct gp_msg_events){ .follow = 1, .kinds = 1u << GP_EVENT_LOST, .only_new = 1 };
	else if (type == GP_MSG_ATTACH)
		m->attach = (struct gp_msg_attach){ 17, GP_CLASS_ONLINE, UINT64_MAX };
	else if (type == GP_MSG_CLASS)
		m->class = (struct gp_msg_class){ UINT64_MAX, GP_CLASS_ONLINE };
	else if (type == GP_MSG_JOB)
		m->job = (struct gp_msg_job){ .pid = 17,
					      .client_class = GP_CLASS_OFFLINE,
					      .weight = GP_MOST_WEIGHT,
					      .floor_permille = 1000,
					      .patience_ns = UINT64_MAX,
					      .name = "slurm 7.0",
					      .cgroup = "/slurm/job_7" };
	else if (type == GP_MSG_JOB_INFO)
		m->job_info = (struct gp_job_info){ .size = sizeof(m->job_info),
						    .name = "slurm 7.0",
						    .client_class = GP_CLASS_ONLINE,
						    .waits = 9,
						    .is_starved = 1,
						    .is_partial = 1 };
}

static void comes_back(uint32_t features)
{
	int size = gp_wire_encode(&msg, features, packet, sizeof(packet));

	assert_true(size >= HEADER);
	assert_int_equal(decode((size_t)size), 0);
	assert_memory_equal(&got, &msg, offsetof(struct gp_msg, item));
	if (has_items(msg.type))
		assert_memory_equal(got.item, msg.item, msg.items.n * sizeof(msg.item[0]));
}

static void every_type_comes_back_as_it_was_sent(void **state)
{
	(void)state;
	for (uint32_t type = GP_MSG_HELLO; type < GP_MSG_TYPES; type++) {
		fill(&msg, type);
		comes_back(0);
		comes_back(GP_FEATURES);
	}
	fill_items(&msg, GP_WIRE_MOST_ITEMS);
	msg.type = GP_MSG_RESULT;
	comes_back(0);
	comes_back(GP_FEATURES);
}

/* Where a packet may end: after all its fields, or before one of a later release. */
static bool may_end(uint32_t type, int cut)
{
	return (type == GP_MSG_HELLO && (cut == 128 || cut == 132 || cut == 136)) ||
	       (type == GP_MSG_WELCOME && cut == 32) || (type == GP_MSG_EVENTS && cut == 24) ||
	       (type == GP_MSG_QUEUE_INFO && cut == 536) || (type == GP_MSG_CLIENT_INFO && cut == 312) ||
	       (type == GP_MSG_EVENT && cut == 328) ||
	       (type == GP_MSG_STATS_INFO &&
		(cut == 440 || cut == 444 || cut == 468 || (cut > 444 && cut <= 1184 && cut % 8 == 0))) ||
	       (type == GP_MSG_DEVICE &&
		((cut >= 128 && cut <= 140 && cut % 4 == 0) || cut == 160 || cut == 168 || cut == 176));
}

static void cut_short(uint32_t type, uint32_t features)
{
	int size;

	fill(&msg, type);
	size = gp_wire_encode(&msg, features, packet, sizeof(packet));
	for (int cut = size - 1; cut >= 0; cut--) {
		if (cut >= 4)
			put(packet, 4, (uint64_t)cut);
		if (may_end(type, cut))
			assert_int_equal(decode((size_t)cut), 0);
		else
			refused((size_t)cut, -EBADMSG);
	}
}

static void every_type_cut_short_is_refused_unless_only_later_fields_are_missing(void **state)
{
	(void)state;
	for (uint32_t type = GP_MSG_HELLO; type < GP_MSG_TYPES; type++) {
		cut_short(type, 0);
		cut_short(type, GP_FEATURES);
	}
}

static void later_fields_that_are_missing_are_zero(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, 144);
	put(packet + 128, 4, 1);
	put(packet + 132, 4, 300);
	put(packet + 136, 8, 20000000);
	assert_int_equal(decode(144), 0);
	assert_int_equal(got.hello.features, 1);
	assert_int_equal(got.hello.weight, 300);
	assert_int_equal(got.hello.slo_ns, 20000000);
	put(packet, 4, 136);
	assert_int_equal(decode(136), 0);
	assert_int_equal(got.hello.weight, 300);
	assert_int_equal(got.hello.slo_ns, 0);
	put(packet, 4, 128);
	assert_int_equal(decode(128), 0);
	assert_int_equal(got.hello.features, 0);
	assert_int_equal(got.hello.weight, 0);
}

static void later_fields_are_written_up_to_the_last_that_is_not_zero(void **state)
{
	(void)state;
	fill(&msg, GP_MSG_HELLO);
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), 144);
	msg.hello.slo_ns = 0;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), 136);
	msg.hello.features = 0;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), 136);
	msg.hello.weight = 0;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), 128);
	memset(&msg.hello, 0, sizeof(msg.hello));
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), 128);
}

static void items_say_where_they_are_to_a_reader_that_asked_for_it(void **state)
{
	unsigned char out[512];
	size_t size = with_strides(GP_MSG_DONE, 2, 0, 0);
	unsigned char *second = packet + STRIDED_FIXED + 24;

	(void)state;
	put(packet + HEADER + 4 + 16, 4, GP_KFD_WAY_DBG);
	put(second, 8, 9);
	put(second + 8, 4, GP_STOP);
	put(second + 12, 4, (uint32_t)-EPERM);
	put(second + 16, 8, 123456789);
	memset(&msg, 0, sizeof(msg));
	msg.type = GP_MSG_DONE;
	msg.serial = 77;
	msg.items = (struct gp_msg_items){ .way = GP_KFD_WAY_DBG, .n = 2 };
	msg.item[1] = (struct gp_wire_item){ 9, GP_STOP, -EPERM, 123456789 };
	assert_int_equal(gp_wire_encode(&msg, GP_FEATURE_STRIDES, out, sizeof(out)), size);
	assert_memory_equal(out, packet, size);
	assert_int_equal(gp_wire_encode(&msg, ~GP_FEATURE_STRIDES, out, sizeof(out)), ITEMS_FIXED + 48);
	assert_int_equal(out[8], 0);
}

static void only_messages_with_items_say_where_they_are(void **state)
{
	(void)state;
	fill(&msg, GP_MSG_PING);
	assert_int_equal(gp_wire_encode(&msg, GP_FEATURES, packet, sizeof(packet)), HEADER);
	assert_int_equal(packet[8], 0);
	blank(GP_MSG_PING, HEADER + 8);
	put(packet + 8, 4, GP_WIRE_STRIDES);
	put(packet + HEADER, 2, HEADER + 4);
	put(packet + HEADER + 2, 2, 24);
	refused(HEADER + 8, -EBADMSG);
}

static void longer_fields_and_longer_items_of_the_future_are_passed_over(void **state)
{
	size_t size = with_strides(GP_MSG_RESULT, 3, 13, 7);
	unsigned char *third = packet + STRIDED_FIXED + 13 + 2 * (24 + 7);

	(void)state;
	memset(packet + STRIDED_FIXED, 0xff, 13);
	memset(third - 7, 0xff, 7);
	put(third, 8, 9);
	put(third + 12, 4, (uint32_t)-EIO);
	memset(third + 24, 0xff, 7);
	assert_int_equal(decode(size), 0);
	assert_int_equal(got.items.n, 3);
	assert_int_equal(got.item[1].queue, 0);
	assert_int_equal(got.item[2].queue, 9);
	assert_int_equal(got.item[2].status, -EIO);
	assert_int_equal(got.item[2].latency_ns, 0);
	put(packet, 4, size + 5); /* and what follows the last one */
	assert_int_equal(decode(size + 5), 0);
}

static void items_that_are_not_where_they_are_said_to_be_are_refused(void **state)
{
	static const struct {
		size_t offset, stride;
	} lies[] = {
		{ 0, 24 },
		{ HEADER, 24 },
		{ ITEMS_FIXED, 24 }, /* where they are without the flag */
		{ STRIDED_FIXED - 1, 24 },
		{ STRIDED_FIXED + 1, 24 },
		{ STRIDED_FIXED + 48, 24 },
		{ STRIDED_FIXED + 49, 24 },
		{ UINT16_MAX, 24 },
		{ STRIDED_FIXED, 0 },
		{ STRIDED_FIXED, 23 },
		{ STRIDED_FIXED, 25 },
		{ STRIDED_FIXED, UINT16_MAX },
		{ UINT16_MAX, UINT16_MAX },
	};
	size_t size = with_strides(GP_MSG_WANTS, 2, 0, 0);

	(void)state;
	assert_int_equal(decode(size), 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		put(packet + HEADER, 2, lies[i].offset);
		put(packet + HEADER + 2, 2, lies[i].stride);
		refused(size, -EBADMSG);
	}
}

static void the_place_of_no_items_is_checked_too(void **state)
{
	size_t size = with_strides(GP_MSG_RESULT, 0, 0, 0);

	(void)state;
	assert_int_equal(decode(size), 0);
	put(packet + HEADER, 2, size + 1);
	refused(size, -EBADMSG);
	put(packet + HEADER, 2, size);
	put(packet + HEADER + 2, 2, 0);
	refused(size, -EBADMSG);
	put(packet, 4, HEADER + 3); /* the place itself is not there */
	refused(HEADER + 3, -EBADMSG);
}

static void strided_items_are_believed_no_more_than_others(void **state)
{
	size_t size = with_strides(GP_MSG_DONE, 2, 0, 8);
	unsigned char *second = packet + STRIDED_FIXED + 32;

	(void)state;
	put(second + 8, 4, GP_STOP + 1);
	refused(size, -EBADMSG);
	put(second + 8, 4, GP_STOP);
	put(second + 12, 4, 1);
	refused(size, -EBADMSG);
	put(second + 12, 4, 0);
	assert_int_equal(decode(size), 0);
	put(packet + HEADER + 4 + 28, 4, 3);
	refused(size, -EBADMSG);
	put(packet + HEADER + 4 + 28, 4, UINT32_MAX);
	refused(size, -EBADMSG);
	refused(with_strides(GP_MSG_DONE, GP_WIRE_MOST_ITEMS + 1, 0, 0), -EBADMSG);
}

static void a_length_that_is_not_the_packets_is_refused(void **state)
{
	size_t size = blank(GP_MSG_PING, HEADER);

	(void)state;
	put(packet, 4, size + 1);
	refused(size, -EBADMSG);
	put(packet, 4, size - 1);
	refused(size, -EBADMSG);
	put(packet, 4, UINT32_MAX);
	refused(size, -EBADMSG);
}

static void a_packet_longer_than_its_type_needs_is_fine_up_to_the_bound(void **state)
{
	(void)state;
	assert_int_equal(decode(blank(GP_MSG_PING, HEADER + 40)), 0);
	assert_int_equal(got.type, GP_MSG_PING);
	assert_int_equal(decode(blank(GP_MSG_PING, GP_WIRE_MOST_BYTES)), 0);
	refused(blank(GP_MSG_PING, GP_WIRE_MOST_BYTES + 1), -EBADMSG);
}

static void another_version_is_said_to_be_one(void **state)
{
	size_t size = blank(GP_MSG_PING, HEADER);

	(void)state;
	put(packet + 6, 2, 2);
	refused(size, -EPROTO);
	put(packet + 6, 2, 0);
	refused(size, -EPROTO);
}

static void an_unknown_type_is_to_be_skipped(void **state)
{
	(void)state;
	refused(blank(0, HEADER), -ENOMSG);
	refused(blank(GP_MSG_TYPES, HEADER), -ENOMSG);
	refused(blank(0xffff, HEADER), -ENOMSG);
	blank(GP_MSG_TYPES, HEADER);
	put(packet + 8, 4, GP_WIRE_STRIDES);
	refused(HEADER, -ENOMSG);
}

static void an_unknown_flag_is_refused(void **state)
{
	size_t size = blank(GP_MSG_PING, HEADER);

	(void)state;
	put(packet + 8, 4, 0x80000000);
	refused(size, -EBADMSG);
	put(packet + 8, 4, GP_WIRE_STRIDES << 1);
	refused(size, -EBADMSG);
	size = with_strides(GP_MSG_HOLD, 1, 0, 0);
	put(packet + 8, 4, GP_WIRE_STRIDES | 2);
	refused(size, -EBADMSG);
}

static void more_items_than_there_may_be_are_refused(void **state)
{
	(void)state;
	assert_int_equal(decode(with_items(GP_MSG_HOLD, GP_WIRE_MOST_ITEMS)), 0);
	refused(with_items(GP_MSG_HOLD, GP_WIRE_MOST_ITEMS + 1), -EBADMSG);
}

static void items_that_are_announced_and_not_there_are_refused(void **state)
{
	size_t size = with_items(GP_MSG_HOLD, 2);

	(void)state;
	put(packet + HEADER + 28, 4, 3);
	refused(size, -EBADMSG);
	put(packet + HEADER + 28, 4, UINT32_MAX); /* times 24, it would be little again in 32 bits */
	refused(size, -EBADMSG);
	put(packet + HEADER + 28, 4, 1);
	assert_int_equal(decode(size), 0);
	assert_int_equal(got.items.n, 1);
}

static void a_want_that_is_none_is_refused(void **state)
{
	size_t size = with_items(GP_MSG_WANTS, 2);

	(void)state;
	put(packet + ITEMS_FIXED + 24 + 8, 4, GP_STOP + 1);
	refused(size, -EBADMSG);
}

static void values_that_an_enum_does_not_have_are_refused(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, 128);
	put(packet + 16, 4, GP_ROLE_PROXY + 1);
	refused(128, -EBADMSG);
	blank(GP_MSG_HELLO, 128);
	put(packet + 28, 4, GP_CLASS_ONLINE + 1);
	refused(128, -EBADMSG);
	blank(GP_MSG_QUEUE, 64);
	put(packet + 48, 4, GP_KIND_XGMI + 1);
	refused(64, -EBADMSG);
	blank(GP_MSG_QUEUE, 64);
	put(packet + 60, 4, 2);
	refused(64, -EBADMSG);
	put(packet, 4, with_items(GP_MSG_HOLD, 0));
	put(packet + HEADER + 20, 4, GP_PREEMPT_RESET + 1);
	refused(ITEMS_FIXED, -EBADMSG);
}

static void an_enum_of_the_new_messages_is_checked_too(void **state)
{
	static const struct {
		uint32_t type, size, at, good, bad;
	} values[] = {
		{ GP_MSG_HINT, 48, 40, GP_HINT_END, GP_HINT_END + 1 },
		{ GP_MSG_HINT, 48, 40, GP_HINT_BEGIN, 0 },
		{ GP_MSG_CLIENT_INFO, 312, 68, GP_CLASS_ONLINE, GP_CLASS_ONLINE + 1 },
		{ GP_MSG_CLIENT_INFO, 312, 76, GP_CLIENT_HELD, GP_CLIENT_HELD + 1 },
		{ GP_MSG_EVENTS, 24, 16, 1, 2 },
		{ GP_MSG_EVENT, 328, 32, 31, 32 },
		{ GP_MSG_EVENT, 328, 68, (uint32_t)-EIO, EIO },
		{ GP_MSG_EVENT, 328, 68, 0, (uint32_t)-4096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		blank(values[i].type, values[i].size);
		put(packet + values[i].at, 4, values[i].good);
		assert_int_equal(decode(values[i].size), 0);
		put(packet + values[i].at, 4, values[i].bad);
		refused(values[i].size, -EBADMSG);
	}
}

static void a_hint_and_a_policy_are_laid_out_as_the_protocol_says(void **state)
{
	(void)state;
	blank(GP_MSG_HINT, 48);
	put(packet + 16, 8, 11);
	put(packet + 24, 8, 0x1122334455667788);
	put(packet + 32, 8, 5000000);
	put(packet + 40, 4, 1);
	put(packet + 44, 4, 0xffffffff);
	assert_int_equal(decode(48), 0);
	assert_int_equal(got.hint.client, 11);
	assert_int_equal(got.hint.number, 0x1122334455667788);
	assert_int_equal(got.hint.expiry_ns, 5000000);
	assert_int_equal(got.hint.what, GP_HINT_BEGIN);
	assert_int_equal(got.hint.device, GP_ALL_DEVICES);
	blank(GP_MSG_POLICY, 52);
	put(packet + 16, 4, 3);
	memcpy(packet + 20, "fair", 4);
	assert_int_equal(decode(52), 0);
	assert_int_equal(got.policy.device, 3);
	assert_string_equal(got.policy.name, "fair");
}

static void a_client_is_laid_out_as_the_protocol_says(void **state)
{
	(void)state;
	blank(GP_MSG_CLIENT_INFO, 316);
	put(packet + 16, 8, 11);
	memcpy(packet + 24, "serve", 5);
	for (uint32_t i = 0; i < 3; i++) /* pid, uid, device */
		put(packet + 56 + 4 * i, 4, 100 + i);
	put(packet + 72, 4, 300);
	put(packet + 80, 8, 20000000);
	for (uint32_t i = 0; i < 4; i++) /* queues, stopped, hints, share */
		put(packet + 88 + 4 * i, 4, 200 + i);
	put(packet + 104, 8, 7);
	put(packet + 112, 8, 8);
	memcpy(packet + 120, "tag", 3);
	memcpy(packet + 216, "pod", 3);
	put(packet + 312, 4, 6);
	assert_int_equal(decode(316), 0);
	assert_int_equal(got.client_info.size, sizeof(got.client_info));
	assert_int_equal(got.client_info.client, 11);
	assert_string_equal(got.client_info.name, "serve");
	assert_int_equal(got.client_info.device, 102);
	assert_int_equal(got.client_info.weight, 300);
	assert_int_equal(got.client_info.slo_ns, 20000000);
	assert_int_equal(got.client_info.share_permille, 203);
	assert_int_equal(got.client_info.hinted, 7);
	assert_int_equal(got.client_info.sampled, 8);
	assert_string_equal(got.client_info.rule, "tag");
	assert_string_equal(got.client_info.place, "pod");
	assert_int_equal(got.client_info.resuming, 6);
	put(packet, 4, 312); /* of a release before */
	assert_int_equal(decode(312), 0);
	assert_int_equal(got.client_info.resuming, 0);
}

/* On the wire they are the structs without their size: no padding, and the same order. */
static void stats_and_events_have_their_structs_order(void **state)
{
	(void)state;
	blank(GP_MSG_STATS_INFO, HEADER + sizeof(struct gp_stats) - sizeof(size_t));
	for (size_t i = HEADER; i < HEADER + 80; i++)
		packet[i] = (unsigned char)i;
	memcpy(packet + 96, "why", 3);
	for (size_t i = 224; i < 280; i++)
		packet[i] = (unsigned char)i;
	memcpy(packet + 280, "fair", 4);
	memcpy(packet + 312, "it looped", 9);
	for (size_t i = 440; i < 464; i++)
		packet[i] = (unsigned char)i;
	put(packet + 464, 4, 1); /* details */
	for (size_t i = 468; i < 1192; i++)
		packet[i] = (unsigned char)(i % 251);
	assert_int_equal(decode(1192), 0);
	assert_int_equal(got.stats_info.size, sizeof(struct gp_stats));
	assert_memory_equal(&got.stats_info.preemptions, packet + HEADER, 1192 - HEADER);
	assert_string_equal(got.stats_info.policy, "fair");
	blank(GP_MSG_EVENT, 332);
	for (size_t i = HEADER; i < 32; i++)
		packet[i] = (unsigned char)i;
	put(packet + 32, 4, GP_EVENT_STARVED);
	for (size_t i = 36; i < 68; i++)
		packet[i] = (unsigned char)i;
	memcpy(packet + 72, "serve", 5);
	memcpy(packet + 104, "update", 6);
	memcpy(packet + 136, "waited", 6);
	put(packet + 328, 4, 2);
	assert_int_equal(decode(332), 0);
	assert_int_equal(got.event.size, sizeof(struct gp_event));
	assert_memory_equal(&got.event.number, packet + HEADER, 332 - HEADER);
}

static void a_text_without_an_end_is_refused(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, 128);
	memset(packet + 32, 'x', 32);
	refused(128, -EBADMSG);
	packet[63] = 0;
	assert_int_equal(decode(128), 0);
	assert_int_equal(strlen(got.hello.name), 31);
	memset(packet + 64, 'x', 64); /* the last field, up to the packet's last byte */
	refused(128, -EBADMSG);
}

static void what_follows_the_end_of_a_text_does_not_come_in(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, 128);
	memcpy(packet + 32, "a\0secret", 8);
	assert_int_equal(decode(128), 0);
	for (size_t i = 1; i < sizeof(got.hello.name); i++)
		assert_int_equal(got.hello.name[i], 0);
}

static void what_is_no_text_becomes_question_marks(void **state)
{
	(void)state;
	blank(GP_MSG_HELLO, 128);
	memcpy(packet + 32, "a\033[2Jb\nc\177\xc3\xa4", 11);
	memcpy(packet + 64, "\xff\xed\xa0\x80\xc2\x9b|\xe2\x80\xae|\xe8\xae", 13);
	assert_int_equal(decode(128), 0);
	assert_string_equal(got.hello.name, "a?[2Jb?c?\xc3\xa4");
	assert_string_equal(got.hello.tag, "?????|?|");
}

static void a_status_is_a_negative_errno_or_it_is_no_message(void **state)
{
	static const int32_t good[] = { 0, -1, -4095 }, bad[] = { 1, INT32_MAX, INT32_MIN, -4096 };
	size_t size = with_items(GP_MSG_DONE, 2);
	unsigned char *status = packet + ITEMS_FIXED + 24 + 12;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		put(status, 4, (uint32_t)good[i]);
		assert_int_equal(decode(size), 0);
		assert_int_equal(got.item[1].status, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(status, 4, (uint32_t)bad[i]);
		refused(size, -EBADMSG);
	}
	size = blank(GP_MSG_ERROR, HEADER + 4 + 192);
	refused(size, -EBADMSG); /* 0 is no error */
	for (size_t i = 1; i < sizeof(good) / sizeof(good[0]); i++) {
		put(packet + HEADER, 4, (uint32_t)good[i]);
		assert_int_equal(decode(size), 0);
		assert_int_equal(got.error.status, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(packet + HEADER, 4, (uint32_t)bad[i]);
		refused(size, -EBADMSG);
	}
}

static void what_may_not_be_received_may_not_be_sent(void **state)
{
	(void)state;
	memset(&msg, 0, sizeof(msg));
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.type = GP_MSG_TYPES;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.type = GP_MSG_HOLD;
	msg.items.n = GP_WIRE_MOST_ITEMS + 1;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.items.n = 1;
	msg.item[0].want = GP_STOP + 1;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.item[0].want = GP_STOP;
	msg.item[0].status = INT32_MIN;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.item[0].status = 0;
	memset(msg.items.text, 'x', sizeof(msg.items.text));
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), -EINVAL);
	msg.items.text[5] = 0;
	assert_int_equal(gp_wire_encode(&msg, 0, packet, sizeof(packet)), ITEMS_FIXED + 24);
}

static void nothing_is_written_where_there_is_no_room(void **state)
{
	unsigned char out[HEADER] = { 0 }, zero[HEADER] = { 0 };

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.type = GP_MSG_PING;
	assert_int_equal(gp_wire_encode(&msg, 0, out, HEADER - 1), -ENOBUFS);
	assert_memory_equal(out, zero, HEADER);
	assert_int_equal(gp_wire_encode(&msg, 0, out, HEADER), HEADER);
}

static void ways_have_names_and_names_have_ways(void **state)
{
	uint32_t way = 99;

	(void)state;
	assert_int_equal(gp_way_by_name("dbg", &way), 0);
	assert_int_equal(way, GP_KFD_WAY_DBG);
	assert_int_equal(gp_way_by_name("auto", &way), 0);
	assert_int_equal(way, GP_KFD_WAY_AUTO);
	assert_int_equal(gp_way_by_name("", &way), -EINVAL);
	assert_int_equal(gp_way_by_name("updat", &way), -EINVAL);
	assert_string_equal(gp_way_name(GP_KFD_WAY_UPDATE), "update");
	assert_string_equal(gp_way_name(GP_KFD_WAY_PRIVATE), "private");
	assert_string_equal(gp_way_name(GP_KFD_WAY_UPDATE | GP_KFD_WAY_DBG), "?");
	assert_string_equal(gp_msg_name(GP_MSG_QUEUE_INFO), "QUEUE_INFO");
	assert_string_equal(gp_msg_name(0), "?");
	assert_string_equal(gp_msg_name(UINT32_MAX), "?");
}

/* The bytes in one line of a recording: hex, NN*COUNT for a run of the same; up to '#'. */
static size_t put_line(char *line, unsigned char *at)
{
	size_t n = 0;

	line[strcspn(line, "#\n")] = '\0';
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
		char *times = strchr(word, '*');
		unsigned byte;

		if (times)
			n += strtoul(times + 1, NULL, 10) - 1; /* the packet was zero, and so are all runs */
		if (times)
			*times = '\0';
		for (; *word; word += 2) {
			assert_int_equal(sscanf(word, "%2x", &byte), 1);
			at[n++] = (unsigned char)byte;
		}
	}
	return n;
}

static void is_the_same_when_it_is_sent_again(size_t size, const char *name, bool seen[GP_MSG_TYPES])
{
	unsigned char out[1024];

	assert_int_equal(decode(size), 0);
	assert_string_equal(gp_msg_name(got.type), name);
	assert_int_equal(gp_wire_encode(&got, 0, out, sizeof(out)), size);
	assert_memory_equal(out, packet, size);
	seen[got.type] = true;
}

/* Each packet: a line of who, direction and type, then lines that are indented. */
static void read_recording(const char *path, bool seen[GP_MSG_TYPES])
{
	char line[512], name[32] = "";
	size_t size = 0;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	memset(packet, 0, sizeof(packet));
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == ' ') {
			size += put_line(line, packet + size);
			continue;
		}
		if (size)
			is_the_same_when_it_is_sent_again(size, name, seen);
		size = 0;
		memset(packet, 0, sizeof(packet));
		(void)sscanf(line, "%*s %*s %31s", name);
	}
	if (size)
		is_the_same_when_it_is_sent_again(size, name, seen);
	fclose(f);
}

static void what_the_first_release_said_is_understood_and_said_the_same(void **state)
{
	const char *source = getenv("GPREEMPT_SOURCE");
	bool seen[GP_MSG_TYPES] = { false };
	char pattern[512];
	glob_t found;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/tests/recorded/protocol1/*.hex", source ? source : ".");
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_recording(found.gl_pathv[i], seen);
	globfree(&found);
	for (uint32_t type = GP_MSG_HELLO; type <= GP_MSG_RESULT; type++)
		assert_true(seen[type]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_is_laid_out_as_the_protocol_says),
		cmocka_unit_test(encoding_writes_the_bytes_that_the_protocol_says),
		cmocka_unit_test(items_follow_the_text_and_a_status_keeps_its_sign),
		cmocka_unit_test(every_type_comes_back_as_it_was_sent),
		cmocka_unit_test(every_type_cut_short_is_refused_unless_only_later_fields_are_missing),
		cmocka_unit_test(later_fields_that_are_missing_are_zero),
		cmocka_unit_test(later_fields_are_written_up_to_the_last_that_is_not_zero),
		cmocka_unit_test(items_say_where_they_are_to_a_reader_that_asked_for_it),
		cmocka_unit_test(only_messages_with_items_say_where_they_are),
		cmocka_unit_test(longer_fields_and_longer_items_of_the_future_are_passed_over),
		cmocka_unit_test(items_that_are_not_where_they_are_said_to_be_are_refused),
		cmocka_unit_test(the_place_of_no_items_is_checked_too),
		cmocka_unit_test(strided_items_are_believed_no_more_than_others),
		cmocka_unit_test(a_length_that_is_not_the_packets_is_refused),
		cmocka_unit_test(a_packet_longer_than_its_type_needs_is_fine_up_to_the_bound),
		cmocka_unit_test(another_version_is_said_to_be_one),
		cmocka_unit_test(an_unknown_type_is_to_be_skipped),
		cmocka_unit_test(an_unknown_flag_is_refused),
		cmocka_unit_test(more_items_than_there_may_be_are_refused),
		cmocka_unit_test(items_that_are_announced_and_not_there_are_refused),
		cmocka_unit_test(a_want_that_is_none_is_refused),
		cmocka_unit_test(values_that_an_enum_does_not_have_are_refused),
		cmocka_unit_test(an_enum_of_the_new_messages_is_checked_too),
		cmocka_unit_test(a_hint_and_a_policy_are_laid_out_as_the_protocol_says),
		cmocka_unit_test(a_client_is_laid_out_as_the_protocol_says),
		cmocka_unit_test(stats_and_events_have_their_structs_order),
		cmocka_unit_test(a_text_without_an_end_is_refused),
		cmocka_unit_test(what_follows_the_end_of_a_text_does_not_come_in),
		cmocka_unit_test(what_is_no_text_becomes_question_marks),
		cmocka_unit_test(a_status_is_a_negative_errno_or_it_is_no_message),
		cmocka_unit_test(what_may_not_be_received_may_not_be_sent),
		cmocka_unit_test(nothing_is_written_where_there_is_no_room),
		cmocka_unit_test(ways_have_names_and_names_have_ways),
		cmocka_unit_test(what_the_first_release_said_is_understood_and_said_the_same),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
