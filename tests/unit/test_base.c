// SPDX-License-Identifier: MIT
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hist.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/timers.h"
#include "base/usage.h"
#include "base/within.h"

/* Under AddressSanitizer too, a request for too much memory is answered with NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* hist */

static void an_empty_histogram_answers_zero_to_everything(void **state)
{
	struct gp_hist h = { 0 };

	(void)state;
	assert_int_equal(gp_hist_quantile(&h, 9900), 0);
	assert_int_equal(gp_hist_mean(&h), 0);
	assert_int_equal(gp_hist_at_most(&h, 12), 0);
}

static void buckets_follow_each_other_without_gap_up_to_the_largest_value(void **state)
{
	uint64_t low, high, next = 0;

	(void)state;
	for (size_t i = 0; i < GP_HIST_BUCKETS; i++) {
		gp_hist_bounds(i, &low, &high);
		assert_int_equal(low, next);
		assert_true(high >= low);
		assert_true(high - low <= low / 256);
		next = high + 1;
	}
	/* The last one ends with 2^64 - 1. */
	assert_int_equal(next, 0);
}

static void a_value_is_counted_in_the_bucket_whose_bounds_hold_it(void **state)
{
	/* Up to 511 each value has its bucket; 512 shares with 513, and 2^20 with the 2^12 - 1 after it. */
	static const struct {
		uint64_t value, low, high;
	} cases[] = { { 0, 0, 0 },
		      { 255, 255, 255 },
		      { 256, 256, 256 },
		      { 511, 511, 511 },
		      { 512, 512, 513 },
		      { 513, 512, 513 },
		      { 1 << 20, 1 << 20, (1 << 20) + (1 << 12) - 1 },
		      { UINT64_MAX, (uint64_t)511 << 55, UINT64_MAX } };

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct gp_hist h = { 0 };
		uint64_t low, high;
		size_t i = 0;

		gp_hist_add(&h, cases[c].value);
		while (!h.bucket[i])
			i++;
		gp_hist_bounds(i, &low, &high);
		assert_int_equal(low, cases[c].low);
		assert_int_equal(high, cases[c].high);
	}
}

static void small_values_have_exact_quantiles(void **state)
{
	struct gp_hist h = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 50; i++)
		gp_hist_add(&h, i);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 50);
	assert_int_equal(gp_hist_quantile(&h, 5000), 25);
	/* 0.99 of 50 is 49.5: the 50th. */
	assert_int_equal(gp_hist_quantile(&h, 9900), 50);
	assert_int_equal(gp_hist_quantile(&h, 9800), 49);
	assert_int_equal(gp_hist_quantile(&h, 10000), 50);
	assert_int_equal(gp_hist_quantile(&h, 0), 1);
	/* More than all of them: there is no more than the largest. */
	assert_int_equal(gp_hist_quantile(&h, 20000), 50);
	/* 50 * 51 / 2 / 50 = 25.5 */
	assert_int_equal(gp_hist_mean(&h), 25);
	assert_int_equal(gp_hist_at_most(&h, 10), 10);
	assert_int_equal(gp_hist_at_most(&h, 0), 0);
	assert_int_equal(gp_hist_at_most(&h, 1000), 50);
	gp_hist_add(&h, 0);
	assert_int_equal(h.min, 0);
	assert_int_equal(gp_hist_at_most(&h, 0), 1);
}

static void the_counts_at_all_bounds_in_one_go_are_those_of_each(void **state)
{
	static struct gp_hist h;
	uint64_t at_most[24], seed = 7;

	(void)state;
	gp_hist_decades(&h, at_most, 24);
	for (size_t i = 0; i < 24; i++)
		assert_int_equal(at_most[i], 0);
	for (int n = 0; n < 2000; n++) {
		seed = seed * 6364136223846793005ull + 1;
		gp_hist_add(&h, (seed >> 33) << (seed >> 60)); /* of all sizes */
		if (n % 100)
			continue;
		gp_hist_decades(&h, at_most, 24);
		for (size_t i = 0; i < 24; i++)
			assert_int_equal(at_most[i], gp_hist_at_most(&h, gp_hist_decade_ns(i)));
	}
}

static void quantiles_are_never_under_the_sorted_value_and_at_most_a_256th_over_it(void **state)
{
	static const uint32_t permyriads[] = { 1, 100, 1000, 5000, 9000, 9500, 9900, 9990, 9999, 10000 };
	static uint64_t values[10000];
	struct gp_hist h = { 0 };
	struct gp_random r;

	(void)state;
	gp_random_init(&r, 1, 0);
	for (size_t i = 0; i < 10000; i++) {
		values[i] = gp_random_next(&r) >> gp_random_between(&r, 0, 63);
		gp_hist_add(&h, values[i]);
	}
	qsort(values, 10000, sizeof(values[0]), compare_u64);
	assert_int_equal(h.min, values[0]);
	assert_int_equal(h.max, values[9999]);
	for (size_t i = 0; i < sizeof(permyriads) / sizeof(permyriads[0]); i++) {
		/* Of 10,000 values the rank is the permyriad itself. */
		uint64_t exact = values[permyriads[i] - 1], got = gp_hist_quantile(&h, permyriads[i]);

		assert_true(got >= exact);
		assert_true(got - exact <= exact / 256);
	}
}

/* map */

static void an_empty_map_holds_nothing_and_gives_nothing_back(void **state)
{
	struct gp_map m = { 0 };

	(void)state;
	assert_null(gp_map_get(&m, 5));
	assert_null(gp_map_remove(&m, 5));
	gp_map_free(&m);
}

static void a_key_that_is_there_is_not_replaced(void **state)
{
	struct gp_map m = { 0 };
	int a, b;

	(void)state;
	assert_int_equal(gp_map_put(&m, 7, &a), 0);
	assert_int_equal(gp_map_put(&m, 7, &b), -EEXIST);
	assert_ptr_equal(gp_map_get(&m, 7), &a);
	assert_int_equal(m.used, 1);
	gp_map_free(&m);
}

#define KEYS 600

/* Few keys in a small table: most of them meet others on their way, and gaps are closed all the time. */
static void ten_thousand_random_puts_and_removes_agree_with_a_plain_array(void **state)
{
	static char there[KEYS], object[KEYS];
	struct gp_map m = { 0 };
	struct gp_random r;
	size_t used = 0;

	(void)state;
	gp_random_init(&r, 3, 0);
	for (size_t step = 0; step < 10000; step++) {
		size_t i = gp_random_between(&r, 0, KEYS - 1);
		uint64_t key = i * i * 977;

		if (gp_random_between(&r, 0, 1)) {
			assert_int_equal(gp_map_put(&m, key, &object[i]), there[i] ? -EEXIST : 0);
			used += !there[i];
			there[i] = 1;
		} else {
			assert_ptr_equal(gp_map_remove(&m, key), there[i] ? &object[i] : NULL);
			used -= there[i];
			there[i] = 0;
		}
		assert_int_equal(m.used, used);
		i = gp_random_between(&r, 0, KEYS - 1);
		assert_ptr_equal(gp_map_get(&m, i * i * 977), there[i] ? &object[i] : NULL);
	}
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(gp_map_get(&m, i * i * 977), there[i] ? &object[i] : NULL);
	gp_map_free(&m);
}

static size_t longest_run(const struct gp_map *m)
{
	size_t run = 0, longest = 0;

	for (size_t i = 0; i < 2 * m->size; i++) {
		run = m->slots[i & (m->size - 1)].value ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void keys_that_differ_only_in_a_few_bits_anywhere_do_not_cluster(void **state)
{
	int object;

	(void)state;
	for (unsigned int shift = 0; shift <= 51; shift++) {
		struct gp_map m = { 0 };

		for (uint64_t i = 1; i <= 4096; i++)
			assert_int_equal(gp_map_put(&m, i << shift, &object), 0);
		assert_true(longest_run(&m) < 64);
		gp_map_free(&m);
	}
}

static void a_map_that_cannot_grow_says_so_and_stays_as_it_is(void **state)
{
	struct gp_map m = { .size = (size_t)1 << 61, .used = (size_t)1 << 60 };
	int object;

	(void)state;
	assert_int_equal(gp_map_put(&m, 1, &object), -ENOMEM);
	assert_int_equal(m.size, (size_t)1 << 61);
	assert_int_equal(m.used, (size_t)1 << 60);
}

/* timers */

static void timers_of_one_instant_fire_in_the_order_they_were_set(void **state)
{
	struct gp_timer timer[40] = { 0 };
	struct gp_timers t = { 0 };

	(void)state;
	assert_int_equal(gp_timers_next(&t), UINT64_MAX);
	assert_null(gp_timers_first(&t));
	for (size_t i = 0; i < 40; i++)
		assert_int_equal(gp_timer_set(&t, &timer[i], 1000), 0);
	/* Set again: it goes to the end. */
	assert_int_equal(gp_timer_set(&t, &timer[0], 1000), 0);
	assert_int_equal(gp_timers_next(&t), 1000);
	for (size_t i = 1; i <= 40; i++) {
		assert_ptr_equal(gp_timers_first(&t), &timer[i % 40]);
		gp_timer_cancel(&t, gp_timers_first(&t));
	}
	assert_null(gp_timers_first(&t));
	gp_timers_free(&t);
}

static void a_cancelled_timer_does_not_fire_and_may_be_cancelled_again(void **state)
{
	struct gp_timer a = { 0 }, b = { 0 };
	struct gp_timers t = { 0 };

	(void)state;
	gp_timer_cancel(&t, &a);
	assert_int_equal(gp_timer_set(&t, &a, 10), 0);
	assert_int_equal(gp_timer_set(&t, &b, 20), 0);
	gp_timer_cancel(&t, &a);
	gp_timer_cancel(&t, &a);
	assert_ptr_equal(gp_timers_first(&t), &b);
	assert_int_equal(gp_timers_next(&t), 20);
	gp_timer_cancel(&t, &b);
	assert_int_equal(gp_timers_next(&t), UINT64_MAX);
	gp_timers_free(&t);
}

/* 11 sits below 10; 4, the last of the heap, takes its place there and must pass 10. */
static void timers_stay_in_order_when_one_in_the_middle_is_cancelled(void **state)
{
	static const uint64_t at[] = { 1, 10, 2, 11, 12, 3, 4 }, left[] = { 1, 2, 3, 4, 10, 12 };
	struct gp_timer timer[7] = { 0 };
	struct gp_timers t = { 0 };

	(void)state;
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(gp_timer_set(&t, &timer[i], at[i]), 0);
	gp_timer_cancel(&t, &timer[3]);
	assert_int_equal(t.heap[3]->at_ns, 10);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(gp_timers_next(&t), left[i]);
		gp_timer_cancel(&t, gp_timers_first(&t));
	}
	gp_timers_free(&t);
}

#define TIMERS 200

static size_t first_of(const uint64_t *at, const uint64_t *order)
{
	size_t first = TIMERS;

	for (size_t i = 0; i < TIMERS; i++)
		if (at[i] &&
		    (first == TIMERS || at[i] < at[first] || (at[i] == at[first] && order[i] < order[first])))
			first = i;
	return first;
}

static void random_sets_and_cancels_agree_with_a_search_of_all_timers(void **state)
{
	static uint64_t at[TIMERS], order[TIMERS]; /* at 0: not set */
	static struct gp_timer timer[TIMERS];
	struct gp_timers t = { 0 };
	struct gp_random r;

	(void)state;
	gp_random_init(&r, 4, 0);
	for (uint64_t step = 1; step <= 10000; step++) {
		size_t i = gp_random_between(&r, 0, TIMERS - 1), first;

		if (gp_random_between(&r, 0, 2)) {
			at[i] = gp_random_between(&r, 1, 50);
			order[i] = step;
			assert_int_equal(gp_timer_set(&t, &timer[i], at[i]), 0);
		} else {
			at[i] = 0;
			gp_timer_cancel(&t, &timer[i]);
		}
		first = first_of(at, order);
		if (first == TIMERS) {
			assert_null(gp_timers_first(&t));
			continue;
		}
		assert_ptr_equal(gp_timers_first(&t), &timer[first]);
		assert_int_equal(gp_timers_next(&t), at[first]);
	}
	gp_timers_free(&t);
}

static void a_timer_for_which_there_is_no_memory_is_not_set(void **state)
{
	struct gp_timers t = { .count = SIZE_MAX / 32, .capacity = SIZE_MAX / 32 };
	struct gp_timer timer = { 0 };

	(void)state;
	assert_int_equal(gp_timer_set(&t, &timer, 1), -ENOMEM);
	assert_int_equal(timer.place, 0);
	assert_int_equal(t.count, SIZE_MAX / 32);
}

/* random */

static void one_seed_and_stream_give_one_sequence_and_others_give_others(void **state)
{
	struct gp_random a, b, seed, stream;
	int differs = 0;

	(void)state;
	gp_random_init(&a, 1, 2);
	gp_random_init(&b, 1, 2);
	gp_random_init(&seed, 2, 2);
	gp_random_init(&stream, 1, 3);
	for (size_t i = 0; i < 100; i++) {
		uint64_t x = gp_random_next(&a);

		assert_int_equal(gp_random_next(&b), x);
		differs += gp_random_next(&seed) != x;
		differs += gp_random_next(&stream) != x;
	}
	assert_int_equal(differs, 200);
}

static void between_reaches_both_ends_and_all_in_the_middle_alike(void **state)
{
	uint64_t seen[6] = { 0 };
	struct gp_random r;

	(void)state;
	gp_random_init(&r, 5, 0);
	for (size_t i = 0; i < 60000; i++) {
		uint64_t x = gp_random_between(&r, 10, 15);

		assert_in_range(x, 10, 15);
		seen[x - 10]++;
	}
	for (size_t i = 0; i < 6; i++)
		assert_in_range(seen[i], 9500, 10500);
	assert_int_equal(gp_random_between(&r, 7, 7), 7);
}

static void between_the_smallest_and_the_largest_number_anything_can_come(void **state)
{
	size_t upper_half = 0;
	struct gp_random r;

	(void)state;
	gp_random_init(&r, 6, 0);
	for (size_t i = 0; i < 1000; i++)
		upper_half += gp_random_between(&r, 0, UINT64_MAX) >> 63;
	assert_in_range(upper_half, 400, 600);
}

static void exponential_numbers_have_their_mean_and_their_distribution(void **state)
{
	/* 1 - exp(-x) for x of 1/4, 1/2, 1, 2 and 4 means, in 100,000ths. */
	static const struct {
		uint64_t at, below;
	} points[] = {
		{ 2500, 22120 }, { 5000, 39347 }, { 10000, 63212 }, { 20000, 86466 }, { 40000, 98168 }
	};
	uint64_t below[5] = { 0 }, sum = 0;
	struct gp_random r;

	(void)state;
	gp_random_init(&r, 7, 0);
	for (size_t i = 0; i < 100000; i++) {
		uint64_t x = gp_random_exponential(&r, 10000);

		sum += x;
		for (size_t p = 0; p < 5; p++)
			below[p] += x < points[p].at;
	}
	assert_in_range(sum / 100000, 9900, 10100);
	for (size_t p = 0; p < 5; p++)
		assert_in_range(below[p], points[p].below - 600, points[p].below + 600);
}

/* list */

struct item {
	int number;
	struct gp_list link;
};

static void a_list_keeps_the_order_and_lets_go_of_what_is_removed(void **state)
{
	struct item items[5];
	struct gp_list head;
	int expected = 0;

	(void)state;
	gp_list_init(&head);
	assert_true(gp_list_empty(&head));
	for (int i = 0; i < 5; i++) {
		items[i].number = i;
		gp_list_append(&head, &items[i].link);
	}
	assert_false(gp_list_empty(&head));
	gp_list_each(pos, &head)
		assert_int_equal(gp_container(pos, struct item, link)->number, expected++);
	assert_int_equal(expected, 5);
	gp_list_each_safe(pos, &head)
		if (gp_container(pos, struct item, link)->number % 2)
			gp_list_remove(pos);
	/* Once more does no harm. */
	gp_list_remove(&items[1].link);
	expected = 0;
	gp_list_each(pos, &head) {
		assert_int_equal(gp_container(pos, struct item, link)->number, expected);
		expected += 2;
	}
	assert_int_equal(expected, 6);
	gp_list_each_safe(pos, &head)
		gp_list_remove(pos);
	assert_true(gp_list_empty(&head));
}

/* sized */

struct two_fields {
	size_t size;
	uint64_t first, second;
};

static void a_struct_from_before_us_is_filled_up_with_zeros(void **state)
{
	const struct two_fields old = { .size = offsetof(struct two_fields, second),
					.first = 5,
					.second = 9 };
	struct two_fields ours = { .second = 7 };

	(void)state;
	assert_int_equal(gp_sized_copy(&ours, sizeof(ours), &old, old.size), 0);
	assert_int_equal(ours.first, 5);
	assert_int_equal(ours.second, 0);
	ours = (struct two_fields){ .second = 7 };
	gp_sized_fill(&ours, sizeof(ours), &old, old.size);
	assert_int_equal(ours.first, 5);
	assert_int_equal(ours.second, 0);
}

static void a_struct_from_after_us_is_taken_only_if_what_we_do_not_know_is_zero(void **state)
{
	const size_t known = offsetof(struct two_fields, second);
	struct two_fields newer = { .size = sizeof(newer), .first = 5 }, ours = { .first = 1, .second = 7 };

	(void)state;
	assert_int_equal(gp_sized_copy(&ours, known, &newer, newer.size), 0);
	assert_int_equal(ours.first, 5);
	assert_int_equal(ours.second, 7); /* behind our end */
	newer = (struct two_fields){ .size = sizeof(newer), .first = 6, .second = (uint64_t)1 << 63 };
	assert_int_equal(gp_sized_copy(&ours, known, &newer, newer.size), -E2BIG);
	assert_int_equal(ours.first, 5);
	gp_sized_fill(&ours, known, &newer, sizeof(newer));
	assert_int_equal(ours.first, 6);
	assert_int_equal(ours.second, 7);
}

static void a_struct_too_small_to_hold_its_size_is_refused(void **state)
{
	struct two_fields ours = { .first = 1 };
	const size_t size = sizeof(size) - 1;

	(void)state;
	assert_int_equal(gp_sized_copy(&ours, sizeof(ours), &size, size), -EINVAL);
	assert_int_equal(ours.first, 1);
	assert_int_equal(gp_sized_copy(&ours, sizeof(ours), &size, sizeof(size)), 0);
	assert_int_equal(ours.first, 0);
}

/* text */

static const struct {
	const char *from, *to;
} texts[] = {
	{ "", "" },
	{ "train.py", "train.py" },
	{ "caf\xc3\xa9 \xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x9a\x80",
	  "caf\xc3\xa9 \xe8\xae\xad\xe7\xbb\x83 \xf0\x9f\x9a\x80" },
	{ "\xc2\xa0\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf4\x8f\xbf\xbf",
	  "\xc2\xa0\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd\xf4\x8f\xbf\xbf" },
	/* Controls: C0, DEL, C1 as a byte and as a character. */
	{ "a\x01\n\x1f\x7f", "a????" },
	{ "\x1b[2J", "?[2J" },
	{ "\x9b"
	  "2J\x80\x9f",
	  "?2J??" },
	{ "\xc2\x80\xc2\x9b\xc2\x9f.", "???." },
	/* Overlong: / in two, three and four bytes; surrogates; above U+10FFFF; leads that never are. */
	{ "\xc0\xaf|\xe0\x80\xaf|\xf0\x80\x80\xaf|", "??|???|????|" },
	{ "\xe0\x9f\xbf|\xf0\x8f\xbf\xbf|", "???|????|" },
	{ "\xed\xa0\x80|\xed\xbf\xbf|\xed\x9f\xbf", "???|???|\xed\x9f\xbf" },
	{ "\xf4\x90\x80\x80|\xf5\x80\x80\x80|\xff\xfe|", "????|????|??|" },
	/* What is not followed by what it needs costs nobody else a letter. */
	{ "caf\xe9s", "caf?s" },
	{ "\xe2\x80"
	  "ab",
	  "??ab" },
	{ "\xf0\x9f\x9a"
	  "\xc3\xa9",
	  "???\xc3\xa9" },
	{ "\xbf\xa9", "??" },
	/* What turns text round or ends its line. */
	{ "\xe2\x80\xae"
	  "cod",
	  "?cod" },
	{ "\xe2\x80\xaa\xe2\x80\xad\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "???????" },
	{ "\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf", "???" },
	{ "\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa", "\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa" },
	/* What nobody sees: it joins emoji, or makes a name look like another's. */
	{ "tr\xe2\x80\x8b"
	  "ain\xe2\x80\x8d\xe2\x81\xa0\xe2\x81\xa4",
	  "tr?ain???" },
	/* Cut by the end. */
	{ "ab\xc3", "ab" },
	{ "ab\xe8\xae", "ab" },
	{ "ab\xf0\x9f\x9a", "ab" },
};

#define NTEXTS (sizeof(texts) / sizeof(texts[0]))

static void text_of_others_comes_out_as_utf8_that_does_nothing(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < NTEXTS; i++) {
		strcpy(text, texts[i].from);
		gp_text_clean(text);
		assert_string_equal(text, texts[i].to);
		gp_text_clean(text);
		assert_string_equal(text, texts[i].to);
	}
}

static void a_copy_is_cut_to_fit_and_never_within_a_character(void **state)
{
	static const char from[] = "a\xc3\xa9\xe8\xae\xad\xf0\x9f\x9a\x80\x01";
	static const size_t fits[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };

	(void)state;
	for (size_t room = 0; room < sizeof(fits) / sizeof(fits[0]); room++) {
		char *exact = test_malloc(room + 1);

		assert_int_equal(gp_text_copy(exact, room + 1, from, strlen(from)), fits[room]);
		assert_int_equal(strlen(exact), fits[room]);
		assert_memory_equal(exact, from, fits[room] < 11 ? fits[room] : 10);
		test_free(exact);
	}
}

static void a_copy_reads_no_further_than_it_is_told_and_shows_a_zero_byte(void **state)
{
	char to[16];
	char *exact = test_malloc(3);

	(void)state;
	memcpy(exact, "a\0\xf0", 3);
	assert_int_equal(gp_text_copy(to, sizeof(to), exact, 3), 2);
	assert_string_equal(to, "a?");
	test_free(exact);
	assert_int_equal(gp_text_copy(to, sizeof(to), "", 0), 0);
	assert_string_equal(to, "");
}

static void a_text_is_as_wide_as_a_terminal_shows_it_and_cut_to_columns_within_no_character(void **state)
{
	static const struct {
		const char *text;
		size_t width, fit; /* bytes in 4 columns */
	} shown[] = { { "", 0, 0 },
		      { "train", 5, 4 },
		      { "\xc3\xa9t\xc3\xa9s!", 5, 6 },                  /* two letters of two bytes */
		      { "\xe8\xae\xad\xe7\xbb\x83\xe4\xb8\xad", 6, 6 }, /* three Chinese characters */
		      { "a\xe8\xae\xad\xe7\xbb\x83", 5, 4 },            /* the second would need a fifth */
		      { "e\xcc\x81te\xcc\x81", 3, 7 },                  /* accents that join the letter */
		      { "\xe2\x96\x81\xe2\x96\x88\xe2\x96\x81\xe2\x96\x88\xe2\x96\x81", 5, 12 } };

	(void)state;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		assert_int_equal(gp_text_width(shown[i].text), shown[i].width);
		assert_int_equal(gp_text_fit(shown[i].text, 4), shown[i].fit);
		assert_int_equal(gp_text_fit(shown[i].text, 80), strlen(shown[i].text));
	}
}

#define SEC 1000000000ull

static void usage_is_of_the_last_ten_seconds_alone(void **state)
{
	struct gp_usage u = { 0 };

	(void)state;
	gp_usage_set(&u, 1, 100 * SEC);
	assert_int_equal(gp_usage_permille(&u, 101 * SEC),
			 1000 / 9); /* of nine seconds and none of the tenth */
	gp_usage_set(&u, 0, 101 * SEC);
	assert_int_equal(gp_usage_permille(&u, 109 * SEC + SEC / 2), 1000 * 2 / 19);
	assert_int_equal(gp_usage_permille(&u, 110 * SEC), 0);
	gp_usage_set(&u, 1, 200 * SEC);
	assert_int_equal(gp_usage_permille(&u, 900 * SEC + SEC / 4), 1000);
	gp_usage_set(&u, 0, 901 * SEC);
	assert_int_equal(gp_usage_permille(&u, 905 * SEC), 1000 * 5 / 9);
}

static void usage_that_goes_on_and_off_within_a_second_is_added_up(void **state)
{
	struct gp_usage u = { 0 };

	(void)state;
	for (uint64_t ms = 0; ms < 20000; ms += 10) {
		gp_usage_set(&u, 1, 100 * SEC + ms * 1000000);
		gp_usage_set(&u, 0, 100 * SEC + (ms + 3) * 1000000);
	}
	assert_int_equal(gp_usage_permille(&u, 120 * SEC - 1), 300);
}

/* within */

/* A process with that root folder; its pid. */
static pid_t process_within(const char *root)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chroot(root) == 0)
			(void)!write(ready[1], "x", 1);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void the_root_folder_of_a_process_is_its_own_and_no_link_in_it_leads_out(void **state)
{
	char root[] = "/tmp/gpreempt-within-XXXXXX", command[64];
	struct gp_within w;
	struct stat made, there;
	pid_t pid;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(root));
	pid = process_within(root);
	assert_int_equal(gp_within_open((uint32_t)pid, &w), 0);
	assert_int_equal(w.uid, 0);
	assert_int_equal(w.gid, 0);
	fd = gp_within_folder(w.root, "usr/lib");
	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "%s/usr/lib", root);
	assert_int_equal(fstat(fd, &made) + stat(command, &there), 0);
	assert_int_equal(made.st_ino, there.st_ino);
	close(fd);
	assert_int_equal(symlinkat("/tmp", w.root, "run"), 0);
	assert_int_equal(gp_within_folder(w.root, "run/gpreempt"), -ENOTDIR);
	close(w.root);
	end_process(pid);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

static void a_process_that_is_gone_or_has_our_root_folder_is_nothing_to_go_into(void **state)
{
	char name[100] = { 0 };
	struct gp_within w;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	end_process(pid);
	assert_int_equal(gp_within_open((uint32_t)pid, &w), -ESRCH);
	assert_int_equal(gp_within_open((uint32_t)getpid(), &w), -EXDEV);
	memset(name, 'a', sizeof(name) - 1);
	assert_int_equal(gp_within_folder(-1, name), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_histogram_answers_zero_to_everything),
		cmocka_unit_test(buckets_follow_each_other_without_gap_up_to_the_largest_value),
		cmocka_unit_test(a_value_is_counted_in_the_bucket_whose_bounds_hold_it),
		cmocka_unit_test(small_values_have_exact_quantiles),
		cmocka_unit_test(the_counts_at_all_bounds_in_one_go_are_those_of_each),
		cmocka_unit_test(quantiles_are_never_under_the_sorted_value_and_at_most_a_256th_over_it),
		cmocka_unit_test(an_empty_map_holds_nothing_and_gives_nothing_back),
		cmocka_unit_test(a_key_that_is_there_is_not_replaced),
		cmocka_unit_test(ten_thousand_random_puts_and_removes_agree_with_a_plain_array),
		cmocka_unit_test(keys_that_differ_only_in_a_few_bits_anywhere_do_not_cluster),
		cmocka_unit_test(a_map_that_cannot_grow_says_so_and_stays_as_it_is),
		cmocka_unit_test(timers_of_one_instant_fire_in_the_order_they_were_set),
		cmocka_unit_test(a_cancelled_timer_does_not_fire_and_may_be_cancelled_again),
		cmocka_unit_test(timers_stay_in_order_when_one_in_the_middle_is_cancelled),
		cmocka_unit_test(random_sets_and_cancels_agree_with_a_search_of_all_timers),
		cmocka_unit_test(a_timer_for_which_there_is_no_memory_is_not_set),
		cmocka_unit_test(one_seed_and_stream_give_one_sequence_and_others_give_others),
		cmocka_unit_test(between_reaches_both_ends_and_all_in_the_middle_alike),
		cmocka_unit_test(between_the_smallest_and_the_largest_number_anything_can_come),
		cmocka_unit_test(exponential_numbers_have_their_mean_and_their_distribution),
		cmocka_unit_test(a_list_keeps_the_order_and_lets_go_of_what_is_removed),
		cmocka_unit_test(a_struct_from_before_us_is_filled_up_with_zeros),
		cmocka_unit_test(a_struct_from_after_us_is_taken_only_if_what_we_do_not_know_is_zero),
		cmocka_unit_test(a_struct_too_small_to_hold_its_size_is_refused),
		cmocka_unit_test(usage_is_of_the_last_ten_seconds_alone),
		cmocka_unit_test(usage_that_goes_on_and_off_within_a_second_is_added_up),
		cmocka_unit_test(text_of_others_comes_out_as_utf8_that_does_nothing),
		cmocka_unit_test(a_copy_is_cut_to_fit_and_never_within_a_character),
		cmocka_unit_test(a_copy_reads_no_further_than_it_is_told_and_shows_a_zero_byte),
		cmocka_unit_test(
			a_text_is_as_wide_as_a_terminal_shows_it_and_cut_to_columns_within_no_character),
		cmocka_unit_test(the_root_folder_of_a_process_is_its_own_and_no_link_in_it_leads_out),
		cmocka_unit_test(a_process_that_is_gone_or_has_our_root_folder_is_nothing_to_go_into),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
