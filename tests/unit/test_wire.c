// SPDX-License-Identifier: MIT
/* Packets are written here by hand, byte by byte: what the code encodes is never taken as right. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

#define HEADER 16
#define ITEMS_FIXED (HEADER + 8 + 8 + 4 * 4 + 192)

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
	assert_int_equal(gp_wire_encode(&msg, out, sizeof(out)), 64);
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

static void fill(struct gp_msg *m, uint32_t type)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	m->serial = 5;
	if (type == GP_MSG_DEVICE) {
		m->device = (struct gp_device_info){ .size = sizeof(m->device), .name = "gfx942", .caps = 3 };
	} else if (type == GP_MSG_QUEUE_INFO) {
		m->info = (struct gp_queue_info){ .size = sizeof(m->info), .queue = 8, .rule = "no rule" };
		m->info.ring = UINT64_MAX;
	} else if (type == GP_MSG_ERROR) {
		m->error.status = -EPERM;
	} else if (type == GP_MSG_RESULT) {
		m->items.n = GP_WIRE_MOST_ITEMS;
		for (uint32_t i = 0; i < m->items.n; i++)
			m->item[i] = (struct gp_wire_item){ i, i % 3, -(int)i, 1ull << i % 64 };
	}
}

static void every_type_comes_back_as_it_was_sent(void **state)
{
	(void)state;
	for (uint32_t type = GP_MSG_HELLO; type < GP_MSG_TYPES; type++) {
		int size;

		fill(&msg, type);
		size = gp_wire_encode(&msg, packet, sizeof(packet));
		assert_true(size >= HEADER);
		assert_int_equal(decode((size_t)size), 0);
		assert_memory_equal(&got, &msg, offsetof(struct gp_msg, item));
		if (type == GP_MSG_RESULT)
			assert_memory_equal(got.item, msg.item, sizeof(msg.item));
	}
}

static void every_type_cut_short_at_any_byte_is_refused(void **state)
{
	(void)state;
	for (uint32_t type = GP_MSG_HELLO; type < GP_MSG_TYPES; type++) {
		int size;

		fill(&msg, type);
		if (type == GP_MSG_RESULT)
			msg.items.n = 3;
		size = gp_wire_encode(&msg, packet, sizeof(packet));
		for (int cut = size - 1; cut >= 0; cut--) {
			if (cut >= 4)
				put(packet, 4, (uint64_t)cut);
			refused((size_t)cut, -EBADMSG);
		}
	}
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
}

static void an_unknown_flag_is_refused(void **state)
{
	size_t size = blank(GP_MSG_PING, HEADER);

	(void)state;
	put(packet + 8, 4, 0x80000000);
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
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.type = GP_MSG_TYPES;
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.type = GP_MSG_HOLD;
	msg.items.n = GP_WIRE_MOST_ITEMS + 1;
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.items.n = 1;
	msg.item[0].want = GP_STOP + 1;
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.item[0].want = GP_STOP;
	msg.item[0].status = INT32_MIN;
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.item[0].status = 0;
	memset(msg.items.text, 'x', sizeof(msg.items.text));
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), -EINVAL);
	msg.items.text[5] = 0;
	assert_int_equal(gp_wire_encode(&msg, packet, sizeof(packet)), ITEMS_FIXED + 24);
}

static void nothing_is_written_where_there_is_no_room(void **state)
{
	unsigned char out[HEADER] = { 0 }, zero[HEADER] = { 0 };

	(void)state;
	memset(&msg, 0, sizeof(msg));
	msg.type = GP_MSG_PING;
	assert_int_equal(gp_wire_encode(&msg, out, HEADER - 1), -ENOBUFS);
	assert_memory_equal(out, zero, HEADER);
	assert_int_equal(gp_wire_encode(&msg, out, HEADER), HEADER);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_is_laid_out_as_the_protocol_says),
		cmocka_unit_test(encoding_writes_the_bytes_that_the_protocol_says),
		cmocka_unit_test(items_follow_the_text_and_a_status_keeps_its_sign),
		cmocka_unit_test(every_type_comes_back_as_it_was_sent),
		cmocka_unit_test(every_type_cut_short_at_any_byte_is_refused),
		cmocka_unit_test(a_length_that_is_not_the_packets_is_refused),
		cmocka_unit_test(a_packet_longer_than_its_type_needs_is_fine_up_to_the_bound),
		cmocka_unit_test(another_version_is_said_to_be_one),
		cmocka_unit_test(an_unknown_type_is_to_be_skipped),
		cmocka_unit_test(an_unknown_flag_is_refused),
		cmocka_unit_test(more_items_than_there_may_be_are_refused),
		cmocka_unit_test(items_that_are_announced_and_not_there_are_refused),
		cmocka_unit_test(a_want_that_is_none_is_refused),
		cmocka_unit_test(values_that_an_enum_does_not_have_are_refused),
		cmocka_unit_test(a_text_without_an_end_is_refused),
		cmocka_unit_test(what_follows_the_end_of_a_text_does_not_come_in),
		cmocka_unit_test(what_is_no_text_becomes_question_marks),
		cmocka_unit_test(a_status_is_a_negative_errno_or_it_is_no_message),
		cmocka_unit_test(what_may_not_be_received_may_not_be_sent),
		cmocka_unit_test(nothing_is_written_where_there_is_no_room),
		cmocka_unit_test(ways_have_names_and_names_have_ways),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
