// SPDX-License-Identifier: MIT
/* The page of gpreempt top, without a terminal: what is unknown, what has room, what is chosen. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/top_act.h"
#include "cli/top_view.h"

#define MOST_LINES 64
#define DASH "-"

static struct gp_device_info devices[8];
static struct gp_client_info clients[40];
static struct gp_top top;
static struct gp_top_line lines[MOST_LINES];
static const struct gp_top_view usual = { .width = 80,
					  .height = 24,
					  .unicode = 1,
					  .slot = 1000,
					  .clock = "12:34:56",
					  .rights = "",
					  .status = "",
					  .keys = "q quit" };

/* Nobody has told anything of so many devices and clients. */
static void begin(size_t ndevices, size_t nclients)
{
	memset(&top, 0, sizeof(top));
	memset(devices, 0, sizeof(devices));
	memset(clients, 0, sizeof(clients));
	for (size_t i = 0; i < ndevices; i++) {
		devices[i].device = (uint32_t)i;
		snprintf(devices[i].name, sizeof(devices[i].name), "MI308X");
		snprintf(devices[i].backend, sizeof(devices[i].backend), "kfd");
	}
	for (size_t i = 0; i < nclients; i++) {
		clients[i] = (struct gp_client_info){ .client = 100 + i,
						      .pid = 4000 + (uint32_t)i,
						      .client_class = GP_CLASS_OFFLINE,
						      .weight = 100,
						      .state = GP_CLIENT_RUNNING };
		snprintf(clients[i].name, sizeof(clients[i].name), "job%zu", i);
	}
	top.slot_ns = GP_S;
	top.list.devices = devices;
	top.list.ndevices = ndevices;
	top.clients = clients;
	top.nclients = nclients;
	top.has_list = top.has_daemon = 1;
	top.has_daemon = 1;
}

static void draw(const struct gp_top_view *v)
{
	assert_true(v->height <= MOST_LINES);
	gp_top_draw(&top, v, lines);
}

/* The words of the device's row, by the headings: PREEMPT/S, P99, OFFLINE, STOPPED. */
static void check_device(const char *rate, const char *p99, const char *offline, const char *stopped)
{
	char words[5][32], name[32], mark[4];

	draw(&usual);
	assert_int_equal(sscanf(lines[2].text, "%3s 0 %31s %31s %31s %31s %31s %31s", mark, name, words[0],
				words[1], words[2], words[3], words[4]),
			 7);
	assert_string_equal(words[1], rate);
	assert_string_equal(words[2], p99);
	assert_string_equal(words[3], offline);
	assert_string_equal(words[4], stopped);
}

static void what_nobody_told_is_a_dash_and_never_a_zero(void **state)
{
	(void)state;
	begin(1, 0);
	snprintf(devices[0].policy, sizeof(devices[0].policy), "priority");
	check_device(DASH, DASH, DASH, DASH);
	assert_string_equal(lines[3].text, "  LATENCY  -");
}

static void a_rate_needs_two_looks_and_counts_by_the_time_between_them(void **state)
{
	struct gp_stats stats = { .preemptions = 7, .policy = "fair" };

	(void)state;
	begin(1, 0);
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 10 * GP_S);
	check_device(DASH, DASH, DASH, "0");
	stats.preemptions = 12;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 12 * GP_S);
	check_device("2.5", DASH, DASH, "0");
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 13 * GP_S);
	check_device("0.0", DASH, DASH, "0"); /* that there was none is known now */
}

static void a_look_a_moment_after_another_leaves_the_rate_as_it_is(void **state)
{
	struct gp_stats stats = { .policy = "fair" };

	(void)state;
	begin(1, 0);
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 10 * GP_S);
	stats.preemptions = 20;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 11 * GP_S);
	stats.stopped = 1;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 11 * GP_S + GP_MS); /* a key was pressed */
	check_device("20.0", DASH, DASH, "1");
	stats.preemptions = 21;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 11 * GP_S + 2 * GP_MS);
	check_device("20.0", DASH, DASH, "1");
	stats.preemptions = 30;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 12 * GP_S); /* what came in between counts */
	check_device("10.0", DASH, DASH, "1");
}

static void a_gpreemptd_that_counts_anew_has_no_rate_at_first(void **state)
{
	struct gp_stats stats = { .preemptions = 7 };

	(void)state;
	begin(1, 0);
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, GP_S);
	stats.preemptions = 3;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 2 * GP_S);
	assert_true(gp_top_device(&top, 0)->rate_milli == GP_TOP_UNKNOWN);
	top.list = (struct gp_machine_list){ 0 }; /* not ours to free */
	top.clients = NULL;
	gp_top_forget(&top);
	stats.preemptions = 9; /* more than the other had: it is another's count all the same */
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 3 * GP_S);
	assert_true(gp_top_device(&top, 0)->rate_milli == GP_TOP_UNKNOWN);
}

static void a_device_that_goes_leaves_nothing_to_the_next_of_its_number(void **state)
{
	const struct gp_stats stats = { .preemptions = 50, .policy = "fifo" };

	(void)state;
	begin(3, 0);
	for (uint32_t i = 0; i < 3; i++)
		gp_top_take_stats(gp_top_device_add(&top, i), &stats, GP_S);
	gp_top_note(&gp_top_device_add(&top, 0)->latency, usual.slot, GP_MS);
	top.list.devices = devices + 2; /* the last alone */
	top.list.ndevices = 1;
	gp_top_drop_gone(&top);
	assert_int_equal(top.n, 1);
	assert_int_equal(gp_top_device(&top, 2)->stats.preemptions, 50);
	top.list.devices = devices;
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, 2 * GP_S);
	check_device(DASH, DASH, DASH, "0");
	assert_int_equal(gp_top_worst(&gp_top_device(&top, 0)->latency, usual.slot), GP_TOP_UNKNOWN);
}

static void the_p99_is_there_once_something_was_stopped(void **state)
{
	struct gp_stats stats = { .policy = "priority",
				  .suspends = 1,
				  .suspend_p99_ns = 1234567,
				  .suspend_max_ns = 2000000,
				  .stopped = 3 };

	(void)state;
	begin(1, 0);
	gp_top_take_stats(gp_top_device_add(&top, 0), &stats, GP_S);
	check_device(DASH, "1.23ms", DASH, "3");
}

static void offline_share_is_of_offline_clients_of_that_device_alone(void **state)
{
	(void)state;
	begin(2, 4);
	assert_true(gp_top_offline_share(&top, 1) == GP_TOP_UNKNOWN);
	clients[0].share_permille = 250;
	clients[1].share_permille = 101;
	clients[1].client_class = GP_CLASS_UNKNOWN; /* it is scheduled as offline */
	clients[2].client_class = GP_CLASS_ONLINE;
	clients[2].share_permille = 400;
	clients[3].device = 1;
	assert_int_equal(gp_top_offline_share(&top, 0), 351);
	assert_int_equal(gp_top_offline_share(&top, 1), 0);
	clients[3].pid = 0; /* of the library's machine: nobody measures there */
	assert_true(gp_top_offline_share(&top, 1) == GP_TOP_UNKNOWN);
}

static void sparks_are_higher_for_longer_stops_and_blank_where_none_was(void **state)
{
	struct gp_top_latency l = { 0 };
	char text[GP_TOP_TEXT];

	(void)state;
	gp_top_note(&l, 997, 5 * GP_US);
	gp_top_note(&l, 999, GP_MS);
	gp_top_note(&l, 999, 20 * GP_US); /* the longest counts */
	gp_top_note(&l, 1000, 2 * GP_S);
	assert_string_equal(gp_top_sparks(&l, 1000, 5, 0, text), " _ =#");
	assert_string_equal(gp_top_sparks(&l, 1000, 5, 1, text), " \xe2\x96\x81 \xe2\x96\x84\xe2\x96\x88");
	assert_string_equal(gp_top_sparks(&l, 1001, 3, 0, text), "=# ");
	assert_int_equal(strlen(gp_top_sparks(&l, 1000, 5000, 0, text)), GP_TOP_SLOTS);
	assert_string_equal(gp_top_sparks(&l, 1, 4, 0, text), "    "); /* before there was a time */
}

static void each_height_of_a_spark_ends_where_the_man_page_says(void **state)
{
	static const uint64_t ends[] = { 10 * GP_US, 50 * GP_US, 200 * GP_US, GP_MS,
					 5 * GP_MS,  50 * GP_MS, 500 * GP_MS };
	static const char *const both[] = { "_.", ".-", "-=", "=+", "+*", "*%", "%#" };
	char text[GP_TOP_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct gp_top_latency l = { 0 };

		gp_top_note(&l, 1000, ends[i]);
		gp_top_note(&l, 1001, ends[i] + 1);
		assert_string_equal(gp_top_sparks(&l, 1001, 2, 0, text), both[i]);
	}
}

static void what_is_longer_ago_than_is_remembered_is_unknown_and_not_another_times(void **state)
{
	struct gp_top_latency l = { 0 };

	(void)state;
	for (uint64_t slot = 1000; slot < 1000 + GP_TOP_SLOTS; slot++)
		gp_top_note(&l, slot, slot);
	assert_int_equal(gp_top_worst(&l, 1000), 1000);
	gp_top_note(&l, 1003 + GP_TOP_SLOTS, 7);
	for (uint64_t slot = 1000; slot <= 1003; slot++)
		assert_true(gp_top_worst(&l, slot) == GP_TOP_UNKNOWN);
	assert_int_equal(gp_top_worst(&l, 1004), 1004);
	assert_true(gp_top_worst(&l, 1001 + GP_TOP_SLOTS) == GP_TOP_UNKNOWN);
	assert_int_equal(gp_top_worst(&l, 1003 + GP_TOP_SLOTS), 7);
	gp_top_note(&l, 1002, 9); /* told late: its place is another's by now */
	assert_true(gp_top_worst(&l, 1002 + GP_TOP_SLOTS) == GP_TOP_UNKNOWN);
	gp_top_note(&l, 1004 + 2 * GP_TOP_SLOTS,
		    6); /* just longer than is remembered: nothing was noted since */
	assert_true(gp_top_worst(&l, 1003 + 2 * GP_TOP_SLOTS) == GP_TOP_UNKNOWN);
	gp_top_note(&l, 1000000, 8);
	assert_true(gp_top_worst(&l, 1003 + GP_TOP_SLOTS) == GP_TOP_UNKNOWN);
	assert_true(gp_top_worst(&l, 1000000 - 1) == GP_TOP_UNKNOWN);
	assert_int_equal(gp_top_worst(&l, 1000000), 8);
}

/* Whatever the size, all of it is on the screen. */
static void no_line_is_wider_than_the_screen_of_any_size(void **state)
{
	struct gp_stats stats = {
		.reason =
			"a reason that is long enough to need more than one line of any terminal, word by word by word"
	};
	struct gp_top_view v = usual;

	(void)state;
	begin(8, 40);
	for (uint32_t i = 0; i < 8; i++)
		gp_top_take_stats(gp_top_device_add(&top, i), &stats, GP_S);
	snprintf(clients[3].name, sizeof(clients[3].name), "\xe8\xae\xad\xe7\xbb\x83-%s",
		 "bert-large-uncased");
	v.status =
		"something that is told at such a length that it needs several lines, even on a terminal that is wider "
		"than others, because it names what is wrong and what to do";
	for (v.height = 1; v.height <= MOST_LINES; v.height++)
		for (v.width = 1; v.width <= 200; v.width += 3)
			for (v.unicode = 0; v.unicode < 2; v.unicode++) {
				gp_top_move(&top, &v, v.width % 2 ? 40 : -40);
				draw(&v);
				for (size_t i = 0; i < v.height; i++)
					assert_true(gp_text_width(lines[i].text) <= v.width);
			}
}

/* Of the table of devices, which is first. */
static int shows_device(size_t height, uint32_t device)
{
	char begin[16];

	snprintf(begin, sizeof(begin), "> %u ", device);
	for (size_t i = 2; i < height && lines[i].text[0]; i++)
		if (!strncmp(lines[i].text, begin, strlen(begin)))
			return 1;
	return 0;
}

static void what_is_chosen_is_on_the_screen_and_one_line_is(void **state)
{
	struct gp_top_view v = usual;
	size_t chosen;

	(void)state;
	begin(8, 40);
	for (v.height = 14; v.height <= MOST_LINES; v.height += 5)
		for (int i = 0; i < 100; i++) {
			gp_top_move(&top, &v, i % 7 < 4 ? i % 11 : -(i % 5));
			gp_top_move_device(&top, &v, i % 3 - 1);
			draw(&v);
			assert_true(shows_device(v.height, v.device));
			chosen = 0;
			for (size_t j = 0; j < v.height; j++)
				if (lines[j].chosen) {
					char name[40];

					snprintf(name, sizeof(name), " %s ", gp_top_chosen(&top, &v)->name);
					assert_non_null(strstr(lines[j].text, name));
					chosen++;
				}
			assert_int_equal(chosen, 1);
		}
}

static void a_device_that_goes_leaves_the_choice_to_one_that_is_there(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(3, 0);
	gp_top_move_device(&top, &v, 2);
	assert_int_equal(v.device, 2);
	top.list.ndevices = 2; /* what lies behind them is the list's no more */
	devices[2].device = 77;
	gp_top_settle(&top, &v);
	assert_int_equal(v.device, 0);
}

static void at_80_by_24_eight_devices_are_seen_beside_clients_whatever_is_wrong(void **state)
{
	struct gp_stats stats = { .reason = "a stop failed" };
	struct gp_top_view v = usual;
	size_t seen = 0;

	(void)state;
	begin(8, 40);
	for (uint32_t i = 0; i < 8; i++)
		gp_top_take_stats(gp_top_device_add(&top, i), &stats, GP_S);
	v.status =
		"what was asked for was refused, for a reason that it takes four lines of a terminal that is as "
		"wide as terminals are to tell of, with what there is to do against it, by whom, with which "
		"command, and why it is not enough to be somebody who has been given some of these rights, but "
		"not all of them";
	draw(&v);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(lines[2 + i].text[2], '0' + (int)i);
	for (size_t i = 10; i < v.height; i++)
		seen += strstr(lines[i].text, " job") != NULL;
	assert_true(seen >= 5);
}

static void at_80_by_24_the_state_and_share_of_a_client_are_seen_whatever_its_name(void **state)
{
	(void)state;
	begin(1, 1);
	snprintf(clients[0].name, sizeof(clients[0].name), "serve-llama-3-70b-instruct-awq");
	clients[0].pid = 4194304;
	clients[0].share_permille = 1000;
	clients[0].slo_ns = 20 * GP_MS;
	draw(&usual);
	assert_non_null(strstr(lines[5].text, " STATE "));
	assert_non_null(strstr(lines[5].text, " SHARE"));
	assert_non_null(strstr(lines[6].text, " running "));
	assert_non_null(strstr(lines[6].text, " 100.0%"));
	assert_non_null(strstr(lines[6].text, "serve-"));
}

static void a_client_that_goes_leaves_the_choice_to_another_and_one_that_stays_keeps_it(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(1, 3);
	gp_top_move(&top, &v, 2);
	assert_int_equal(gp_top_chosen(&top, &v)->client, 102);
	clients[1] = clients[2]; /* 101 goes */
	top.nclients = 2;
	gp_top_settle(&top, &v);
	assert_int_equal(gp_top_chosen(&top, &v)->client, 102);
	top.nclients = 1;
	gp_top_settle(&top, &v);
	assert_int_equal(gp_top_chosen(&top, &v)->client, 100);
	top.nclients = 0;
	gp_top_settle(&top, &v);
	assert_null(gp_top_chosen(&top, &v));
	draw(&v);
}

static void a_client_on_two_devices_is_chosen_on_one_of_them(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(2, 2);
	clients[1] = clients[0];
	clients[1].device = 1;
	gp_top_move(&top, &v, 1);
	assert_int_equal(gp_top_chosen(&top, &v)->device, 1);
	draw(&v);
	assert_int_equal(lines[7].chosen + lines[8].chosen, 1);
}

static void where_there_is_no_utf8_every_byte_is_ascii_and_columns_stand_straight(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	v.unicode = 0;
	begin(1, 2);
	snprintf(clients[0].name, sizeof(clients[0].name), "\xe8\xae\xad\xe7\xbb\x83\xc3\xa9");
	gp_top_note(&gp_top_device_add(&top, 0)->latency, v.slot, GP_MS);
	draw(&v);
	for (size_t i = 0; i < v.height; i++)
		for (const char *at = lines[i].text; *at; at++)
			assert_true(*at > 0);
	assert_non_null(strstr(lines[6].text, " ????? ")); /* two of two columns and one of one */
	assert_int_equal(strstr(lines[6].text, "offline") - lines[6].text,
			 strstr(lines[7].text, "offline") - lines[7].text);
}

static void what_is_wrong_with_the_chosen_device_and_what_is_told_stand_on_the_page_whole(void **state)
{
	static const struct {
		uint64_t ns;
		const char *line;
	} ages[] = {
		{ 1, "  REASON   0s ago: the driver refused" },
		{ 59 * GP_S + 999 * GP_MS, "  REASON   59s ago: the driver refused" },
		{ 60 * GP_S, "  REASON   1min ago: the driver refused" },
		{ 23 * 3600 * GP_S, "  REASON   23h ago: the driver refused" },
		{ 50 * 3600 * GP_S, "  REASON   2d ago: the driver refused" },
	};
	struct gp_stats stats = { .reason = "the driver refused" };
	struct gp_top_view v = usual;
	char status[2 * GP_TOP_TEXT + 2];

	(void)state;
	begin(2, 30);
	gp_top_take_stats(gp_top_device_add(&top, 1), &stats, GP_S);
	v.status =
		"gpreemptd has gone (Connection reset by peer): what it held for you runs again; restart it, and try again";
	v.status_wrong = 1;
	draw(&v);
	assert_null(strstr(lines[5].text, "refused"));
	gp_top_move_device(&top, &v, 1);
	draw(&v);
	assert_string_equal(lines[5].text, "  REASON   the driver refused");
	assert_int_equal(lines[5].style, GP_TOP_WRONG);
	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		stats.reason_age_ns = ages[i].ns;
		gp_top_take_stats(gp_top_device_add(&top, 1), &stats, GP_S);
		draw(&v);
		assert_string_equal(lines[5].text, ages[i].line);
	}
	snprintf(status, sizeof(status), "%s %s", lines[21].text, lines[22].text);
	assert_string_equal(status, v.status);
	assert_int_equal(lines[22].style, GP_TOP_WRONG);
	assert_string_equal(lines[23].text, "q quit");
	stats = (struct gp_stats){ .ejection = "it stalled" };
	gp_top_take_stats(gp_top_device_add(&top, 1), &stats, 2 * GP_S);
	draw(&v);
	assert_string_equal(lines[5].text, "  REASON   it stalled");
}

static void of_the_keys_those_are_named_that_there_is_room_for_and_each_whole(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(1, 1);
	v.keys = "q quit  s suspend  r resume  c class  p policy  arrows: client, device";
	draw(&v);
	assert_string_equal(lines[23].text, v.keys);
	v.width = 60;
	draw(&v);
	assert_string_equal(lines[23].text, "q quit  s suspend  r resume  c class  p policy");
	v.width = 40;
	draw(&v);
	assert_string_equal(lines[23].text, "q quit  s suspend  r resume  c class");
}

static void in_the_first_line_rights_and_the_time_are_whole_and_the_rest_is_what_has_room(void **state)
{
	static const struct {
		size_t width;
		const char *rights, *title;
	} each[] = {
		{ 80, "", "gpreempt top  1 device  1 client  every 1s" },
		{ 80, "read-only but for your own", "gpreempt top  1 device  1 client  every 1s" },
		{ 79, "read-only but for your own", "gpreempt top  1 device  1 client" },
		{ 60, "read-only but for your own", "gpreempt top" },
		{ 44, "", "gpreempt top  1 device  1 client" },
		{ 40, "", "gpreempt top" },
		{ 40, "read-only but for your own", "gpreempt top" },
	};
	struct gp_top_view v = usual;
	char want[128];

	(void)state;
	begin(1, 1);
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		v.width = each[i].width;
		v.rights = each[i].rights;
		draw(&v);
		snprintf(want, sizeof(want), "%s%s%s", v.rights, *v.rights ? "  " : "", v.clock);
		if (v.width == 40 && *v.rights)
			snprintf(want, sizeof(want), "%s", v.rights);
		assert_int_equal(strlen(lines[0].text), v.width);
		assert_memory_equal(lines[0].text, each[i].title, strlen(each[i].title));
		assert_memory_equal(lines[0].text + strlen(each[i].title), "  ", 2);
		assert_string_equal(lines[0].text + v.width - strlen(want), want);
	}
}

static void a_clients_queues_are_those_on_its_device(void **state)
{
	struct gp_queue_info queues[] = { { .client = 100, .device = 0 },
					  { .client = 100, .device = 1 },
					  { .client = 100, .device = 1 },
					  { .client = 101, .device = 1 } };

	(void)state;
	begin(2, 1);
	top.list.queues = queues;
	top.list.nqueues = sizeof(queues) / sizeof(queues[0]);
	clients[0].device = 1;
	assert_int_equal(gp_top_queues_of(&top, &clients[0]), 2);
}

static void a_narrow_screen_has_what_clients_do_and_what_it_costs(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(1, 2);
	snprintf(clients[1].name, sizeof(clients[1].name), "a-name-of-thirty-one-characters");
	for (v.width = 40; v.width <= 80; v.width++) {
		draw(&v);
		assert_non_null(strstr(lines[1].text, " PREEMPT/S "));
		assert_non_null(strstr(lines[5].text, " STATE "));
		assert_non_null(strstr(lines[5].text, " SHARE"));
		assert_non_null(strstr(lines[7].text, " a-nam"));
	}
	assert_non_null(strstr(lines[5].text, " USER "));
}

static void what_nobody_told_is_not_counted(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(1, 0);
	gp_top_note(&gp_top_device_add(&top, 0)->latency, v.slot, GP_MS);
	draw(&v);
	assert_non_null(strstr(lines[0].text, "1 device  0 clients"));
	assert_non_null(strstr(lines[3].text, "most 1ms"));
	assert_string_equal(lines[5].text, "  no clients");
	top.has_daemon = 0; /* the machine's files have devices, and no clients */
	draw(&v);
	assert_non_null(strstr(lines[0].text, "1 device  - clients"));
	assert_string_equal(lines[3].text, "  LATENCY  -");
	assert_string_equal(lines[5].text, "  clients are not known: gpreemptd alone knows them");
	top.has_list = 0;
	top.list.ndevices = 0;
	draw(&v);
	assert_non_null(strstr(lines[0].text, "- devices  - clients"));
	assert_string_equal(lines[2].text, "  devices are not known");
}

static void stopped_and_online_clients_look_different_and_say_so_in_words(void **state)
{
	struct gp_top_view v = usual;

	(void)state;
	begin(1, 3);
	clients[0].client_class = GP_CLASS_ONLINE;
	clients[1].state = GP_CLIENT_WAITING;
	clients[2].state = GP_CLIENT_HELD;
	draw(&v);
	assert_int_equal(lines[6].style, GP_TOP_ONLINE);
	assert_non_null(strstr(lines[6].text, " online "));
	assert_int_equal(lines[7].style, GP_TOP_STOPPED);
	assert_non_null(strstr(lines[7].text, " waiting "));
	assert_int_equal(lines[8].style, GP_TOP_STOPPED);
	assert_non_null(strstr(lines[8].text, " held "));
	clients[1].state = GP_CLIENT_RUNNING;
	clients[1].resuming = 1;
	draw(&v);
	assert_int_equal(lines[7].style, GP_TOP_STOPPED);
	assert_non_null(strstr(lines[7].text, " resuming "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_told_is_a_dash_and_never_a_zero),
		cmocka_unit_test(a_rate_needs_two_looks_and_counts_by_the_time_between_them),
		cmocka_unit_test(a_look_a_moment_after_another_leaves_the_rate_as_it_is),
		cmocka_unit_test(a_gpreemptd_that_counts_anew_has_no_rate_at_first),
		cmocka_unit_test(a_device_that_goes_leaves_nothing_to_the_next_of_its_number),
		cmocka_unit_test(the_p99_is_there_once_something_was_stopped),
		cmocka_unit_test(offline_share_is_of_offline_clients_of_that_device_alone),
		cmocka_unit_test(sparks_are_higher_for_longer_stops_and_blank_where_none_was),
		cmocka_unit_test(each_height_of_a_spark_ends_where_the_man_page_says),
		cmocka_unit_test(what_is_longer_ago_than_is_remembered_is_unknown_and_not_another_times),
		cmocka_unit_test(no_line_is_wider_than_the_screen_of_any_size),
		cmocka_unit_test(what_is_chosen_is_on_the_screen_and_one_line_is),
		cmocka_unit_test(a_device_that_goes_leaves_the_choice_to_one_that_is_there),
		cmocka_unit_test(at_80_by_24_eight_devices_are_seen_beside_clients_whatever_is_wrong),
		cmocka_unit_test(at_80_by_24_the_state_and_share_of_a_client_are_seen_whatever_its_name),
		cmocka_unit_test(a_client_that_goes_leaves_the_choice_to_another_and_one_that_stays_keeps_it),
		cmocka_unit_test(a_client_on_two_devices_is_chosen_on_one_of_them),
		cmocka_unit_test(where_there_is_no_utf8_every_byte_is_ascii_and_columns_stand_straight),
		cmocka_unit_test(
			what_is_wrong_with_the_chosen_device_and_what_is_told_stand_on_the_page_whole),
		cmocka_unit_test(of_the_keys_those_are_named_that_there_is_room_for_and_each_whole),
		cmocka_unit_test(
			in_the_first_line_rights_and_the_time_are_whole_and_the_rest_is_what_has_room),
		cmocka_unit_test(a_clients_queues_are_those_on_its_device),
		cmocka_unit_test(a_narrow_screen_has_what_clients_do_and_what_it_costs),
		cmocka_unit_test(what_nobody_told_is_not_counted),
		cmocka_unit_test(stopped_and_online_clients_look_different_and_say_so_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
