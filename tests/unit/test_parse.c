// SPDX-License-Identifier: MIT
/* What the parsers of scenarios, devices and traces take, and what they say of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/parse.h"
#include "base/units.h"

/* A device file that adds up. Tests change one line of it. */
static const char device_text[] = "[device]\n"
				  "title = A device\n"
				  "sharing = concurrent\n"
				  "xccs = 4\n"
				  "cus_per_xcc = 20\n"
				  "waves_per_cu = 32\n"
				  "queue_slots = 24\n"
				  "save_bytes_per_wave = 19000\n"
				  "save_bytes_per_us = 5300000\n"
				  "save_fixed_ns = 10000\n"
				  "restore_fixed_ns = 10000\n"
				  "unmap_ns = 15000\n"
				  "fence_ns = 5000\n"
				  "map_fixed_ns = 15000\n"
				  "map_queue_ns = 1000\n"
				  "selective = 0\n"
				  "quantum_ns = 10000000\n"
				  "slice_ns = 0\n"
				  "yield_slice_ns = 0\n"
				  "switch_ns = 0\n"
				  "yields = 1\n"
				  "yield_notice_ns = 20000\n"
				  "yield_linger_ns = 1000000\n"
				  "dispatch_ns = 2000\n"
				  "launch_ns = 10000\n"
				  "gate_ns = 1800\n"
				  "turn_away_ns = 3000\n"
				  "message_ns = 15000\n"
				  "sample_ns = 200000\n"
				  "stop_call_min_ns = 5000\n"
				  "stop_call_max_ns = 10000\n"
				  "resume_call_min_ns = 5000\n"
				  "resume_call_max_ns = 10000\n"
				  "slice_call_min_ns = 5000\n"
				  "slice_call_max_ns = 10000\n"
				  "slice_calls = 1\n";

/* The device text with the line of one key replaced; NULL takes the line out. */
static char *device_with(const char *key, const char *line)
{
	char *text = calloc(1, sizeof(device_text) + 256);
	const char *at = strstr(device_text, key);
	const char *rest;

	assert_non_null(text);
	assert_non_null(at);
	rest = strchr(at, '\n') + 1;
	sprintf(text, "%.*s%s%s", (int)(at - device_text), device_text, line ? line : "", rest);
	return text;
}

static int known_device(void *arg, const char *name, const char *from, struct gp_device_file *ret,
			struct gp_diag *diag)
{
	char *broken;
	int r;

	(void)arg;
	(void)from;
	if (!strcmp(name, "locked.ini"))
		return -EACCES;
	if (!strcmp(name, "broken.ini")) {
		broken = device_with("xccs", "xccs = 0\n");
		r = gp_device_parse(broken, "broken.ini", ret, diag);
		free(broken);
		return r;
	}
	if (strcmp(name, "mi308x"))
		return -ENOENT;
	return gp_device_parse(device_text, "mi308x", ret, diag);
}

static int known_file(void *arg, const char *name, const char *from, char **ret_text)
{
	(void)arg;
	(void)from;
	if (!strcmp(name, "good.txt"))
		*ret_text = strdup("gpreempt-trace 1\n# three\n0 10 0\n1 10.5 1\n2 30 0\n");
	else if (!strcmp(name, "hole.txt"))
		*ret_text = strdup("gpreempt-trace 1\n0 10 0\n2 30 0\n");
	else
		return -ENOENT;
	return 0;
}

static const struct gp_parse_env env = { .devices = "h200 mi300x mi308x",
					 .device = known_device,
					 .read = known_file };

static struct gp_scenario parse_good(const char *text)
{
	struct gp_scenario sc = { 0 };
	struct gp_diag diag;
	int r;

	r = gp_scenario_parse(text, "t.ini", &env, &sc, &diag);
	if (r < 0)
		fail_msg("refused: %s", diag.text);
	return sc;
}

static void expect_refusal(const char *text, const char *message)
{
	struct gp_scenario sc, untouched;
	struct gp_diag diag;

	memset(&sc, 0x5a, sizeof(sc));
	memcpy(&untouched, &sc, sizeof(sc));
	assert_int_equal(gp_scenario_parse(text, "t.ini", &env, &sc, &diag), -EINVAL);
	assert_string_equal(diag.text, message);
	assert_memory_equal(&sc, &untouched, sizeof(sc));
}

static void expect_device_refusal(const char *key, const char *line, const char *message)
{
	char *text = device_with(key, line);
	struct gp_device_file file;
	struct gp_diag diag;

	assert_int_equal(gp_device_parse(text, "d.ini", &file, &diag), -EINVAL);
	assert_string_equal(diag.text, message);
	free(text);
}

static void expect_trace_refusal(const char *text, const char *message)
{
	struct gp_trace trace;
	struct gp_diag diag;

	assert_int_equal(gp_trace_parse(text, "t.txt", 2, &trace, &diag), -EINVAL);
	assert_string_equal(diag.text, message);
}

#define SERVE "[online serve]\nwork = infer-1ms\nrate = 10\n"
#define TRAIN "[offline train]\nwork = train\n"

static void a_small_scenario_gets_every_default(void **state)
{
	struct gp_scenario sc = parse_good(SERVE TRAIN);

	(void)state;
	assert_string_equal(sc.name, "t");
	assert_string_equal(sc.device_name, "mi308x");
	assert_string_equal(sc.policy, "priority");
	assert_int_equal(sc.device.xccs, 4);
	assert_int_equal(sc.devices, 1);
	assert_int_equal(sc.duration_ns, 60 * GP_S);
	assert_int_equal(sc.warmup_ns, GP_S);
	assert_int_equal(sc.seed, 1);
	assert_int_equal(sc.throttle_depth, 2);
	assert_int_equal(sc.max_starve_ns, GP_S);
	assert_int_equal(sc.nconfigs, 14);
	assert_int_equal(sc.ngroups, 2);
	assert_int_equal(sc.groups[0].client_class, GP_CLASS_ONLINE);
	assert_int_equal(sc.groups[0].arrival, GP_ARRIVAL_POISSON);
	assert_int_equal(sc.groups[0].rate_milli, 10000);
	assert_int_equal(sc.groups[0].prepare_ns, 300 * GP_US);
	assert_int_equal(sc.groups[0].priority, 7);
	assert_int_equal(sc.groups[1].client_class, GP_CLASS_OFFLINE);
	assert_int_equal(sc.groups[1].arrival, GP_ARRIVAL_ALWAYS);
	assert_int_equal(sc.groups[1].prepare_ns, 0);
	gp_scenario_free(&sc);
}

static void every_setting_of_a_scenario_arrives(void **state)
{
	struct gp_scenario sc = parse_good(
		"[scenario]\nname = mine\ndevices = 2\nduration = 1.5s\nwarmup = 100ms\n"
		"seed = 7\npolicy = deadline\nconfigs = native, gate+hints\n"
		"throttle_depth = 3\nmax_starve = never\nrotate = no\nquantum = 40ms\npark = 3\nyield_slice = 2us\n"
		"[work w]\nkernels = 5\nlength = 10us\nshare = 0.25\nevery = 2\n"
		"every_length = 1ms\ninterval = 5us\n"
		"[online a]\nwork = w\nclients = 3\nqueues = 2\nidle_queues = 4\narrival = closed\n"
		"think = 2ms\nprepare = 1us\nserial = yes\nslo = 20ms\npriority = 11\nweight = 50\n"
		"device = 1\n");

	(void)state;
	assert_string_equal(sc.name, "mine");
	assert_int_equal(sc.duration_ns, 1500 * GP_MS);
	assert_int_equal(sc.max_starve_ns, UINT64_MAX);
	assert_int_equal(sc.rotate, 0);
	assert_int_equal(sc.quantum_ns, 40 * GP_MS);
	assert_int_equal(sc.park, 3);
	assert_int_equal(sc.yield_slice_ns, 2000);
	assert_int_equal(sc.nconfigs, 2);
	assert_int_equal(sc.configs[1].kind, GP_CONFIG_GATE);
	assert_int_equal(sc.configs[1].hints, 1);
	assert_int_equal(sc.groups[0].work.share_permille, 250);
	assert_int_equal(sc.groups[0].work.every_length_ns, GP_MS);
	assert_int_equal(sc.groups[0].arrival, GP_ARRIVAL_CLOSED);
	assert_int_equal(sc.groups[0].think_ns, 2 * GP_MS);
	assert_int_equal(sc.groups[0].serial, 1);
	assert_int_equal(sc.groups[0].slo_ns, 20 * GP_MS);
	assert_int_equal(sc.groups[0].idle_queues, 4);
	assert_int_equal(sc.groups[0].priority, 11);
	assert_int_equal(sc.groups[0].device, 1);
	gp_scenario_free(&sc);
}

static void a_load_becomes_a_rate_of_each_client(void **state)
{
	struct gp_scenario sc = parse_good("[work w]\nkernels = 10\nlength = 1ms\n"
					   "[online a]\nwork = w\nclients = 2\nload = 50%\n");

	(void)state;
	/* Ten kernels of 1 ms, each 2 us after the last: half of the time, of two clients. */
	assert_int_equal(sc.groups[0].rate_milli, 500ull * 1000000000 / (10 * 1002000) / 2);
	gp_scenario_free(&sc);
}

static void a_trace_is_read_into_the_group(void **state)
{
	struct gp_scenario sc = parse_good("[online a]\nwork = decode\nclients = 2\narrival = trace\n"
					   "trace = good.txt\n");

	(void)state;
	assert_int_equal(sc.groups[0].trace_len, 3);
	assert_int_equal(sc.groups[0].trace_ns[1], 10500);
	assert_int_equal(sc.groups[0].trace_client[1], 1);
	gp_scenario_free(&sc);
}

static void a_sweep_keeps_its_values_in_order(void **state)
{
	struct gp_scenario sc = parse_good(SERVE TRAIN "[sweep]\nlength = 100us 2ms 10000s\n");

	(void)state;
	assert_int_equal(sc.sweep, GP_SWEEP_LENGTH);
	assert_int_equal(sc.nsweep, 3);
	assert_int_equal(sc.sweep_values[2], 10000 * GP_S);
	gp_scenario_free(&sc);
}

static void comments_blanks_and_windows_line_ends_are_fine(void **state)
{
	struct gp_scenario sc =
		parse_good("\xef\xbb\xbf# top\r\n\r\n  [online serve] ; here\r\n"
			   "   work = infer-1ms\r\n\trate = 0.001 ; slow\r\n"
			   "; a comment that is far longer than the longest line that a setting may "
			   "have, because it says at length where the number in the line below it comes "
			   "from, who measured it, on which card, and what it was before\r\n");

	(void)state;
	assert_int_equal(sc.groups[0].rate_milli, 1);
	gp_scenario_free(&sc);
}

static void an_unknown_key_is_answered_with_the_nearest(void **state)
{
	(void)state;
	expect_refusal("[scenario]\ndurations = 5s\n" SERVE,
		       "t.ini:2: unknown key \"durations\"; did you mean duration?");
}

static void a_key_like_none_is_answered_with_all(void **state)
{
	(void)state;
	expect_refusal(SERVE "[sweep]\ncolour = red\n",
		       "t.ini:5: unknown key \"colour\"; known are: load length queues");
}

static void an_unknown_section_is_answered_with_the_nearest(void **state)
{
	(void)state;
	expect_refusal("\n[onlin serve]\n", "t.ini:2: unknown section \"onlin\"; did you mean online?");
}

static void a_negative_rate_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online serve]\nwork = infer-1ms\nrate = -5\n",
		       "t.ini:3: rate must be more than 0, as in: rate = 10");
}

static void a_rate_of_zero_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online serve]\nrate = 0.000\n",
		       "t.ini:2: rate must be more than 0, as in: rate = 10");
}

static void a_rate_that_is_a_word_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online serve]\nrate = fast\n",
		       "t.ini:2: rate = fast is not a number of requests per second; "
		       "write it as in: rate = 10");
}

static void a_time_without_a_unit_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[scenario]\nduration = 60\n" SERVE,
		"t.ini:2: duration = 60 has no unit; write ns, us, ms, s, min, m or h behind it, as in: duration = 60s");
}

static void a_time_out_of_range_is_refused_with_the_range(void **state)
{
	(void)state;
	expect_refusal(
		"[online serve]\nslo = -3ms\n",
		"t.ini:2: slo = -3ms is not possible; write a time from 1us to 1000s, as in: slo = 20ms");
}

static void a_key_given_twice_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nseed = 1\nseed = 2\n" SERVE,
		       "t.ini:3: seed is given twice; keep this or line 2");
}

static void a_section_given_twice_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\n" SERVE "[scenario]\n",
		       "t.ini:5: [scenario] again; the first is on line 1, put all into that one");
}

static void two_groups_of_one_name_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "[offline serve]\n",
		       "t.ini:4: the name serve is taken by line 1; choose another");
}

static void a_group_without_work_is_refused_even_if_it_is_empty(void **state)
{
	(void)state;
	expect_refusal("\n[offline train]\n",
		       "t.ini:2: group train has no work; add a line such as: work = infer-1ms");
}

static void work_that_nobody_defined_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[offline train]\nwork = trian\n",
		"t.ini:2: no work \"trian\"; write infer-1ms, infer-10ms, decode, train or long, or add a "
		"section [work trian]");
}

static void built_in_work_cannot_be_defined_again(void **state)
{
	(void)state;
	expect_refusal("[work train]\nkernels = 1\nlength = 1us\n" SERVE,
		       "t.ini:1: work train is built in and stays as it is; choose another name");
}

static void work_without_a_length_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "[work w]\nkernels = 5\n",
		       "t.ini:4: work w has no length; add a line such as: length = 50us");
}

static void every_without_every_length_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "[work w]\nkernels = 5\nlength = 1ms\nevery = 10\n",
		       "t.ini:7: every and every_length go together; write both, as in: every = 10 and "
		       "every_length = 2ms");
}

static void a_share_over_one_is_refused(void **state)
{
	(void)state;
	expect_refusal("[work w]\nshare = 1.5\n",
		       "t.ini:2: share = 1.5 is not possible; write the part of the GPU that "
		       "it fills, from 0.001 to 1, as in: share = 0.5");
}

static void an_online_group_without_a_rate_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online serve]\nwork = infer-1ms\n",
		       "t.ini:1: group serve has neither rate nor load; add a line such as: rate = 10");
}

static void rate_and_load_together_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "load = 50%\n", "t.ini:4: rate and load say the same; leave one out");
}

static void a_rate_under_a_sweep_of_load_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "[sweep]\nload = 10% 30%\n",
		       "t.ini:3: [sweep] sets the load; leave rate out here");
}

static void a_load_without_a_percent_sign_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online serve]\nload = 50\n",
		       "t.ini:2: load = 50 is not a percentage; write it as in: load = 50%");
}

static void an_offline_group_with_a_rate_is_refused(void **state)
{
	(void)state;
	expect_refusal(TRAIN "rate = 5\n", "t.ini:3: an offline group always has work; leave rate out");
}

static void an_unknown_arrival_is_answered_with_the_nearest(void **state)
{
	(void)state;
	expect_refusal("[online a]\narrival = poison\n",
		       "t.ini:2: unknown arrival \"poison\"; did you mean poisson?");
}

static void a_byte_order_mark_is_no_part_of_a_trace(void **state)
{
	struct gp_trace trace;
	struct gp_diag diag;

	(void)state;
	assert_int_equal(
		gp_trace_parse("\xef\xbb\xbfgpreempt-trace 1\r\n0 10 0\r\n", "t.txt", 2, &trace, &diag), 0);
	assert_int_equal(trace.len, 1);
	gp_trace_free(&trace);
}

static void arrival_by_trace_without_a_file_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online a]\nwork = decode\narrival = trace\n",
		       "t.ini:1: arrival = trace needs a file; add a line such as: trace = arrivals.txt");
}

static void a_trace_that_is_not_there_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online a]\nwork = decode\narrival = trace\ntrace = gone.txt\n",
		       "t.ini:4: cannot read the trace \"gone.txt\": No such file or directory");
}

static void a_hole_in_the_trace_of_a_scenario_is_told_with_the_line_in_the_trace(void **state)
{
	(void)state;
	expect_refusal(
		"[online a]\nwork = decode\narrival = trace\ntrace = hole.txt\n",
		"hole.txt:3: request 1 is missing (found 2 after 0); every request must be there, in order");
}

static void a_device_that_nobody_knows_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[scenario]\n\ndevice = mi250\n" SERVE,
		"t.ini:3: no device \"mi250\"; write one of: h200 mi300x mi308x, or a file, as in: device = "
		"./mine.ini");
}

static void a_fault_in_a_device_file_is_told_with_the_line_in_that_file(void **state)
{
	(void)state;
	expect_refusal("[scenario]\ndevice = broken.ini\n" SERVE,
		       "broken.ini:4: xccs = 0 is not possible; write a whole number from 1 to 64");
}

static void a_device_file_that_may_not_be_read_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\ndevice = locked.ini\n" SERVE,
		       "t.ini:2: cannot read the device \"locked.ini\": Permission denied");
}

static void a_warmup_as_long_as_the_run_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[scenario]\nwarmup = 2s\nduration = 2s\n" SERVE,
		"t.ini:3: duration 2s leaves nothing after a warmup of 2s; make it longer, or write a shorter "
		"warmup");
}

static void a_scenario_without_groups_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nseed = 3\n", "t.ini:1: no group; add a section such as: [online serve]");
}

static void an_empty_file_is_refused(void **state)
{
	(void)state;
	expect_refusal("", "t.ini:1: no group; add a section such as: [online serve]");
}

static void a_setting_before_any_section_is_refused(void **state)
{
	(void)state;
	expect_refusal("# hello\nseed = 3\n",
		       "t.ini:2: seed stands before any section; a line with one, as [NAME], comes first");
}

static void a_line_that_is_neither_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nhello\nseed = x\n",
		       "t.ini:2: neither a section nor a setting; write it as: key = value");
}

static void a_section_that_does_not_end_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario\n", "t.ini:1: the section has no end; write it as: [scenario]");
	expect_refusal("[x\r\n", "t.ini:1: the section has no end; write it as: [x]");
}

static void a_line_longer_than_a_line_is_refused(void **state)
{
	char text[400] = "[scenario]\nname = ";

	(void)state;
	memset(text + strlen(text), 'x', 300);
	expect_refusal(text, "t.ini:2: the line is too long; keep it under 199 characters");
}

static void too_many_clients_in_all_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "clients = 60\n" TRAIN "clients = 5\n",
		       "t.ini:7: 65 clients in all; the most is 64");
}

static void too_many_queues_with_the_idle_ones_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE TRAIN "clients = 2\nidle_queues = 600\n",
		       "t.ini:6: 1203 queues in all; the most is 1024, lower clients or queues");
}

static void too_many_queues_at_the_end_of_a_sweep_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE TRAIN "clients = 2\n[sweep]\nqueues = 1 600\n",
		       "t.ini:6: 1201 queues in all; the most is 1024, lower clients or queues");
}

static void too_many_groups_are_refused(void **state)
{
	char text[1024] = "";

	(void)state;
	for (int i = 0; i < 9; i++)
		sprintf(text + strlen(text), "[offline g%d]\nwork = train\n", i);
	expect_refusal(text,
		       "t.ini:17: more than 8 groups; put clients that are alike into one with: clients = N");
}

static void a_group_on_a_device_that_is_not_there_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "device = 1\n", "t.ini:4: no device 1; with devices = 1 the last is 0");
}

static void an_unknown_config_is_answered_with_the_nearest(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nconfigs = native interrupt-batch\n" SERVE,
		       "t.ini:2: unknown config \"interrupt-batch\"; did you mean interrupt-batched?");
}

static void a_config_with_another_ending_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nconfigs = gate+hint\n" SERVE,
		       "t.ini:2: unknown ending \"+hint\"; a config ends in +hints or in nothing");
}

static void a_config_named_twice_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nconfigs = gate native gate\n" SERVE,
		       "t.ini:2: gate is there twice; leave one out");
}

static void an_unknown_policy_is_refused_with_the_known(void **state)
{
	(void)state;
	expect_refusal("[scenario]\npolicy = random\n" SERVE,
		       "t.ini:2: unknown policy \"random\"; known are: fifo priority fair deadline");
}

static void two_sweeps_are_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE TRAIN "[sweep]\nqueues = 1 2\nlength = 1ms\n",
		       "t.ini:8: a second sweep; keep one of: load length queues");
}

static void an_empty_sweep_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "[sweep]\n", "t.ini:4: [sweep] is empty; add a line such as: queues = 1 2 4");
}

static void a_sweep_of_queues_without_offline_groups_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		SERVE "[sweep]\nqueues = 1 2\n",
		"t.ini:4: this sweep is of offline groups, and there is none; add one, as in: [offline train]");
}

static void control_characters_do_not_reach_the_message(void **state)
{
	(void)state;
	expect_refusal(
		"[scenario]\n\033[2Jx = 1\n" SERVE,
		"t.ini:2: unknown key \"?[2Jx\"; known are: name device devices duration warmup seed policy configs "
		"throttle_depth max_starve rotate quantum park yield_slice");
}

static void a_whole_device_file_is_read(void **state)
{
	struct gp_device_file file;
	struct gp_diag diag;

	(void)state;
	assert_int_equal(gp_device_parse(device_text, "dir/mi308x.ini", &file, &diag), 0);
	assert_string_equal(file.name, "mi308x");
	assert_string_equal(file.title, "A device");
	assert_int_equal(file.device.sharing, GPM_CONCURRENT);
	assert_int_equal(file.device.save_bytes_per_us, 5300000);
	assert_int_equal(file.device.slice_calls, 1);
}

static void a_device_file_without_a_key_is_refused(void **state)
{
	(void)state;
	expect_device_refusal(
		"fence_ns", NULL,
		"d.ini:1: fence_ns is missing; add a line: fence_ns = a number from 0 to 1000000000");
}

static void a_device_file_without_a_title_is_refused(void **state)
{
	(void)state;
	expect_device_refusal(
		"title", NULL,
		"d.ini:1: title is missing; add a line such as: title = AMD Instinct MI308X (model)");
}

static void a_device_file_with_an_unknown_key_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("fence_ns", "fence = 5\n",
			      "d.ini:13: unknown key \"fence\"; did you mean fence_ns?");
}

static void a_device_file_with_a_key_twice_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("fence_ns", "fence_ns = 5\nfence_ns = 6\n",
			      "d.ini:14: fence_ns is given twice; keep this or line 13");
}

static void a_device_constant_that_is_not_a_number_is_refused(void **state)
{
	(void)state;
	expect_device_refusal(
		"fence_ns", "fence_ns = 5us\n",
		"d.ini:13: fence_ns = 5us is not possible; write a whole number from 0 to 1000000000");
}

static void a_device_constant_out_of_range_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("xccs", "xccs = 65\n",
			      "d.ini:4: xccs = 65 is not possible; write a whole number from 1 to 64");
}

static void a_device_with_an_unknown_sharing_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("sharing", "sharing = none\n",
			      "d.ini:3: unknown sharing \"none\"; known are: concurrent timeslice");
}

static void a_device_file_that_does_not_add_up_is_refused_at_the_key(void **state)
{
	(void)state;
	expect_device_refusal("stop_call_min_ns", "stop_call_min_ns = 20000\n",
			      "d.ini:30: stop_call_min_ns must not be more than stop_call_max_ns");
}

static void another_section_in_a_device_file_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("title", "[scenario]\n",
			      "d.ini:2: unknown section [scenario]; a device file has only [device]");
}

static void a_trace_without_its_first_line_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal("0 10 0\n",
			     "t.txt:1: not an arrival trace; the first line must be: gpreempt-trace 1");
}

static void a_hole_in_a_trace_is_refused(void **state)
{
	char text[256] = "gpreempt-trace 1\n# times in us\n";

	(void)state;
	for (int i = 0; i < 10; i++)
		if (i != 7)
			sprintf(text + strlen(text), "%d %d 0\n", i, i * 100);
	expect_trace_refusal(text,
			     "t.txt:10: request 7 is missing (found 8 after 6); every request must be there, "
			     "in order");
}

static void a_trace_that_begins_late_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal(
		"gpreempt-trace 1\n1 10 0\n",
		"t.txt:2: request 0 is missing (the first is 1); every request must be there, in order");
}

static void a_request_that_is_there_twice_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal("gpreempt-trace 1\n0 10 0\n0 20 0\n", "t.txt:3: request 0 again; write 1");
}

static void a_trace_whose_time_goes_back_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal("gpreempt-trace 1\n0 10.5 0\n1 10 0\n",
			     "t.txt:3: time goes back to 10 us; write 10.500 or more");
}

static void a_trace_with_a_client_too_many_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal("gpreempt-trace 1\n0 10 2\n",
			     "t.txt:2: \"2\" is not a client; write a number from 0 to 1");
}

static void a_request_with_a_part_missing_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal(
		"gpreempt-trace 1\n0 10\n",
		"t.txt:2: not a request; write its number, time in us and client, as in: 0 1500 0");
}

static void a_trace_without_requests_is_refused(void **state)
{
	(void)state;
	expect_trace_refusal("gpreempt-trace 1\n# none\n",
			     "t.txt:2: no request in it; add a line such as: 0 1500 0");
}

static void what_follows_a_section_on_its_line_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario] seed = 3\n", "t.ini:1: put what follows the section on a line of its own");
}

static void a_section_with_a_name_it_does_not_have_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario mine]\n", "t.ini:1: [scenario] has no name; write just: [scenario]");
}

static void a_group_without_a_name_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online]\n", "t.ini:1: [online] needs one name; write it as in: [online mine]");
}

static void a_group_with_two_names_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online a b]\n", "t.ini:1: [online] needs one name; write it as in: [online mine]");
}

static void a_name_with_other_characters_is_refused(void **state)
{
	(void)state;
	expect_refusal("[online a$b]\n",
		       "t.ini:1: name \"a$b\" is not a name; use letters, digits, - _ and . only");
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nname = a-name-of-more-than-thirty-one-letters\n" SERVE,
		       "t.ini:2: name is too long; keep it under 32 characters");
}

static void an_empty_name_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nname =\n" SERVE, "t.ini:2: name is empty; write it as in: name = mine");
}

static void a_rate_finer_than_a_thousandth_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[online a]\nrate = 0.0005\n",
		"t.ini:2: rate = 0.0005 is not possible; write a number from 0.001 to 1000000 with at most three "
		"decimals, as in: rate = 10");
}

static void a_load_over_all_of_the_time_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[online a]\nload = 101%\n",
		"t.ini:2: load = 101% is not possible; write a percentage from 0.1% to 100%, as in: load = 50%");
}

static void a_load_that_is_hardly_a_request_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		"[work w]\nkernels = 1000\nlength = 10000s\n[online a]\nwork = w\nload = 1%\n",
		"t.ini:6: the load is less than one request in 1000 s of each client; raise load or take shorter "
		"work");
}

static void the_lowest_load_of_a_sweep_must_be_possible_too(void **state)
{
	(void)state;
	expect_refusal(
		"[work w]\nkernels = 1\nlength = 500s\n[online a]\nwork = w\n[sweep]\nload = 90% 1%\n",
		"t.ini:4: the load is less than one request in 1000 s of each client; raise load or take shorter "
		"work");
}

static void rotate_is_yes_or_no(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nrotate = 1\n" SERVE,
		       "t.ini:2: rotate = 1 is not possible; write yes or no");
}

static void a_closed_loop_with_a_rate_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "arrival = closed\n",
		       "t.ini:3: this arrival has no rate of its own; leave rate out, or "
		       "write: arrival = poisson");
}

static void a_trace_with_another_arrival_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE "trace = good.txt\n", "t.ini:4: a trace is read only with: arrival = trace");
}

static void a_sweep_of_load_without_online_groups_is_refused(void **state)
{
	(void)state;
	expect_refusal(
		TRAIN "[sweep]\nload = 10%\n",
		"t.ini:3: load is swept, but there is no online group; add one, as in: [online serve]");
}

static void a_sweep_with_no_values_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE TRAIN "[sweep]\nqueues =\n",
		       "t.ini:7: queues is empty; write values, as in: queues = 1 2 4");
}

static void a_sweep_with_too_many_values_is_refused(void **state)
{
	(void)state;
	expect_refusal(SERVE TRAIN
		       "[sweep]\nqueues = 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 "
		       "25\n",
		       "t.ini:7: more than 24 values; write fewer");
}

static void a_list_of_no_configs_is_refused(void **state)
{
	(void)state;
	expect_refusal("[scenario]\nconfigs = ,\n" SERVE,
		       "t.ini:2: no config; write some, as in: exclusive native auto+hints");
}

static void too_many_works_are_refused(void **state)
{
	char text[1024] = "";

	(void)state;
	for (int i = 0; i < 17; i++)
		sprintf(text + strlen(text), "[work w%d]\n", i);
	expect_refusal(text, "t.ini:17: more than 16 works; leave some out");
}

static void a_second_device_section_is_refused(void **state)
{
	(void)state;
	expect_device_refusal("title", "[device]\n",
			      "d.ini:2: [device] again; the first is on line 1, put all into that one");
}

static void an_empty_device_file_is_refused(void **state)
{
	struct gp_device_file file;
	struct gp_diag diag;

	(void)state;
	assert_int_equal(gp_device_parse("# nothing\n", "d.ini", &file, &diag), -EINVAL);
	assert_string_equal(diag.text, "d.ini:1: no [device] section; begin with: [device]");
}

static void a_line_of_a_trace_that_is_too_long_is_refused(void **state)
{
	char text[400] = "gpreempt-trace 1\n0 1 ";

	(void)state;
	memset(text + strlen(text), '0', 300);
	expect_trace_refusal(text,
			     "t.txt:2: the line is too long; write a number, a time in us and a client");
}

static void times_are_exact_in_both_directions(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "100ns", 100 },          { "20us", 20000 },       { "1.5ms", 1500000 },
		{ "2s", 2000000000 },      { "0.000000001s", 1 },   { "5min", 300000000000 },
		{ "1.5h", 5400000000000 }, { "10m", 600000000000 },
	};
	char text[GP_TIME_TEXT];
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(gp_time_parse(good[i].text, &ns), 0);
		assert_int_equal(ns, good[i].ns);
		assert_int_equal(gp_time_parse(gp_time_text(ns, text), &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	assert_string_equal(gp_time_text(1500000, text), "1.5ms");
	assert_string_equal(gp_time_text(90000000000, text), "90s");
}

static void what_is_not_a_time_is_told_apart(void **state)
{
	uint64_t ns;

	(void)state;
	assert_int_equal(gp_time_parse("20", &ns), -EDOM);
	assert_int_equal(gp_time_parse("ms", &ns), -EINVAL);
	assert_int_equal(gp_time_parse("1.2.3ms", &ns), -EINVAL);
	assert_int_equal(gp_time_parse("5M", &ns), -EINVAL);
	assert_int_equal(gp_time_parse("-5ms", &ns), -ERANGE);
	assert_int_equal(gp_time_parse("0.05ns", &ns), -ERANGE);
	assert_int_equal(gp_time_parse("99999999999999s", &ns), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_scenario_gets_every_default),
		cmocka_unit_test(every_setting_of_a_scenario_arrives),
		cmocka_unit_test(a_load_becomes_a_rate_of_each_client),
		cmocka_unit_test(a_trace_is_read_into_the_group),
		cmocka_unit_test(a_sweep_keeps_its_values_in_order),
		cmocka_unit_test(comments_blanks_and_windows_line_ends_are_fine),
		cmocka_unit_test(an_unknown_key_is_answered_with_the_nearest),
		cmocka_unit_test(a_key_like_none_is_answered_with_all),
		cmocka_unit_test(an_unknown_section_is_answered_with_the_nearest),
		cmocka_unit_test(a_negative_rate_is_refused),
		cmocka_unit_test(a_rate_of_zero_is_refused),
		cmocka_unit_test(a_rate_that_is_a_word_is_refused),
		cmocka_unit_test(a_time_without_a_unit_is_refused),
		cmocka_unit_test(a_time_out_of_range_is_refused_with_the_range),
		cmocka_unit_test(a_key_given_twice_is_refused),
		cmocka_unit_test(a_section_given_twice_is_refused),
		cmocka_unit_test(two_groups_of_one_name_are_refused),
		cmocka_unit_test(a_group_without_work_is_refused_even_if_it_is_empty),
		cmocka_unit_test(work_that_nobody_defined_is_refused),
		cmocka_unit_test(built_in_work_cannot_be_defined_again),
		cmocka_unit_test(work_without_a_length_is_refused),
		cmocka_unit_test(every_without_every_length_is_refused),
		cmocka_unit_test(a_share_over_one_is_refused),
		cmocka_unit_test(an_online_group_without_a_rate_is_refused),
		cmocka_unit_test(rate_and_load_together_are_refused),
		cmocka_unit_test(a_rate_under_a_sweep_of_load_is_refused),
		cmocka_unit_test(a_load_without_a_percent_sign_is_refused),
		cmocka_unit_test(an_offline_group_with_a_rate_is_refused),
		cmocka_unit_test(an_unknown_arrival_is_answered_with_the_nearest),
		cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_trace),
		cmocka_unit_test(arrival_by_trace_without_a_file_is_refused),
		cmocka_unit_test(a_trace_that_is_not_there_is_refused),
		cmocka_unit_test(a_hole_in_the_trace_of_a_scenario_is_told_with_the_line_in_the_trace),
		cmocka_unit_test(a_device_that_nobody_knows_is_refused),
		cmocka_unit_test(a_fault_in_a_device_file_is_told_with_the_line_in_that_file),
		cmocka_unit_test(a_device_file_that_may_not_be_read_is_refused),
		cmocka_unit_test(a_warmup_as_long_as_the_run_is_refused),
		cmocka_unit_test(a_scenario_without_groups_is_refused),
		cmocka_unit_test(an_empty_file_is_refused),
		cmocka_unit_test(a_setting_before_any_section_is_refused),
		cmocka_unit_test(a_line_that_is_neither_is_refused),
		cmocka_unit_test(a_section_that_does_not_end_is_refused),
		cmocka_unit_test(a_line_longer_than_a_line_is_refused),
		cmocka_unit_test(too_many_clients_in_all_are_refused),
		cmocka_unit_test(too_many_queues_with_the_idle_ones_are_refused),
		cmocka_unit_test(too_many_queues_at_the_end_of_a_sweep_are_refused),
		cmocka_unit_test(too_many_groups_are_refused),
		cmocka_unit_test(a_group_on_a_device_that_is_not_there_is_refused),
		cmocka_unit_test(an_unknown_config_is_answered_with_the_nearest),
		cmocka_unit_test(a_config_with_another_ending_is_refused),
		cmocka_unit_test(a_config_named_twice_is_refused),
		cmocka_unit_test(an_unknown_policy_is_refused_with_the_known),
		cmocka_unit_test(two_sweeps_are_refused),
		cmocka_unit_test(an_empty_sweep_is_refused),
		cmocka_unit_test(a_sweep_of_queues_without_offline_groups_is_refused),
		cmocka_unit_test(control_characters_do_not_reach_the_message),
		cmocka_unit_test(a_whole_device_file_is_read),
		cmocka_unit_test(a_device_file_without_a_key_is_refused),
		cmocka_unit_test(a_device_file_without_a_title_is_refused),
		cmocka_unit_test(a_device_file_with_an_unknown_key_is_refused),
		cmocka_unit_test(a_device_file_with_a_key_twice_is_refused),
		cmocka_unit_test(a_device_constant_that_is_not_a_number_is_refused),
		cmocka_unit_test(a_device_constant_out_of_range_is_refused),
		cmocka_unit_test(a_device_with_an_unknown_sharing_is_refused),
		cmocka_unit_test(a_device_file_that_does_not_add_up_is_refused_at_the_key),
		cmocka_unit_test(another_section_in_a_device_file_is_refused),
		cmocka_unit_test(a_trace_without_its_first_line_is_refused),
		cmocka_unit_test(a_hole_in_a_trace_is_refused),
		cmocka_unit_test(a_trace_that_begins_late_is_refused),
		cmocka_unit_test(a_request_that_is_there_twice_is_refused),
		cmocka_unit_test(a_trace_whose_time_goes_back_is_refused),
		cmocka_unit_test(a_trace_with_a_client_too_many_is_refused),
		cmocka_unit_test(a_request_with_a_part_missing_is_refused),
		cmocka_unit_test(a_trace_without_requests_is_refused),
		cmocka_unit_test(what_follows_a_section_on_its_line_is_refused),
		cmocka_unit_test(a_section_with_a_name_it_does_not_have_is_refused),
		cmocka_unit_test(a_group_without_a_name_is_refused),
		cmocka_unit_test(a_group_with_two_names_is_refused),
		cmocka_unit_test(a_name_with_other_characters_is_refused),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(an_empty_name_is_refused),
		cmocka_unit_test(a_rate_finer_than_a_thousandth_is_refused),
		cmocka_unit_test(a_load_over_all_of_the_time_is_refused),
		cmocka_unit_test(a_load_that_is_hardly_a_request_is_refused),
		cmocka_unit_test(the_lowest_load_of_a_sweep_must_be_possible_too),
		cmocka_unit_test(rotate_is_yes_or_no),
		cmocka_unit_test(a_closed_loop_with_a_rate_is_refused),
		cmocka_unit_test(a_trace_with_another_arrival_is_refused),
		cmocka_unit_test(a_sweep_of_load_without_online_groups_is_refused),
		cmocka_unit_test(a_sweep_with_no_values_is_refused),
		cmocka_unit_test(a_sweep_with_too_many_values_is_refused),
		cmocka_unit_test(a_list_of_no_configs_is_refused),
		cmocka_unit_test(too_many_works_are_refused),
		cmocka_unit_test(a_second_device_section_is_refused),
		cmocka_unit_test(an_empty_device_file_is_refused),
		cmocka_unit_test(a_line_of_a_trace_that_is_too_long_is_refused),
		cmocka_unit_test(times_are_exact_in_both_directions),
		cmocka_unit_test(what_is_not_a_time_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
