// SPDX-License-Identifier: MIT
/* ROCr's door on tables that the test makes up, as each release has them; and the packets that go through it.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "level/aql.h"
#include "level/api.h"
#include "level/rocr_tables.h"

#define MOST 128

bool OnLoad(struct gp_hsa_tables *tables, uint64_t version, uint64_t nfailed, const char *const *failed);
void OnUnload(void);
extern const struct gp_level_api gpreempt_level;

static struct {
	struct gp_hsa_version version;
	void *entry[MOST];
} core, amd;
static struct gp_hsa_tables root;
static char why[256];

static int nothing(void)
{
	return 0;
}

/* Major ids of root, core and AMD's, and how many entries the latter two have. */
static void make(uint32_t root_id, uint32_t core_id, uint32_t amd_id, uint32_t ncore, uint32_t namd)
{
	root = (struct gp_hsa_tables){ .version = { .major_id = root_id, .minor_id = 48 },
				       .core = (void *)&core,
				       .amd = (void *)&amd };
	core.version = (struct gp_hsa_version){ .major_id = core_id, .minor_id = 16 + 8 * ncore };
	amd.version = (struct gp_hsa_version){ .major_id = amd_id, .minor_id = 16 + 8 * namd };
	for (uint32_t i = 0; i < MOST; i++) {
		core.entry[i] = i < ncore ? (void *)nothing : NULL;
		amd.entry[i] = i < namd ? (void *)nothing : NULL;
	}
}

static void assert_places(uint32_t intercept_create)
{
	struct gp_rocr_entries e;

	assert_int_equal(gp_rocr_entries(&root, &e, why, sizeof(why)), 0);
	assert_ptr_equal(e.queue_create, &core.entry[7]);
	assert_ptr_equal(e.queue_destroy, &core.entry[9]);
	assert_ptr_equal(e.signal_create, &core.entry[37]);
	assert_ptr_equal(e.signal_wait, &core.entry[44]);
	assert_ptr_equal(e.intercept_create, &amd.entry[intercept_create]);
	assert_ptr_equal(e.intercept_register, &amd.entry[intercept_create + 1]);
	assert_ptr_equal(e.set_priority, &amd.entry[intercept_create + 2]);
}

static void each_known_release_has_its_places(void **state)
{
	(void)state;
	make(1, 1, 1, 125, 48); /* 5.2.3 */
	assert_places(35);
	make(1, 1, 1, 125, 44); /* before it */
	assert_places(35);
	make(3, 2, 2, 125, 68); /* 6.0 */
	assert_places(37);
	make(3, 2, 2, 126, 84); /* 7: longer */
	assert_places(37);
}

static void assert_shut(const char *said)
{
	char doors[512];
	void *before[3];

	memcpy(before, (void *[]){ core.entry[7], core.entry[9], amd.entry[35] }, sizeof(before));
	assert_true(OnLoad(&root, 0, 0, NULL)); /* the program has its runtime */
	assert_ptr_equal(core.entry[7], before[0]);
	assert_ptr_equal(core.entry[9], before[1]);
	assert_ptr_equal(amd.entry[35], before[2]);
	gpreempt_level.doors(doors, sizeof(doors));
	assert_non_null(strstr(doors, "rocr: shut: "));
	assert_non_null(strstr(doors, said));
}

static void tables_that_nobody_knows_are_left_as_they_are(void **state)
{
	(void)state;
	make(1, 1, 1, 125, 50); /* between 5.2 and 6: something was put in before, nobody said where */
	assert_shut("known are those of ROCm 5.2 and of 6 and later");
	make(4, 3, 3, 125, 90);
	assert_shut("versions 4, 3 and 3 with 125 and 90 entries");
	make(3, 2, 1, 125, 48);
	assert_shut("versions 3, 2 and 1");
	make(3, 2, 2, 125, 39); /* too short for its id */
	assert_shut("125 and 39 entries");
	make(3, 2, 2, 44, 68);
	assert_shut("44 and 68 entries");
	make(3, 2, 2, 125, 68);
	amd.version.minor_id = 0;
	assert_shut("125 and 0 entries");
	make(3, 2, 2, 125, 68);
	amd.entry[38] = NULL;
	assert_shut("is empty");
	make(3, 2, 2, 125, 68);
	root.version.minor_id = 16;
	assert_shut("gave no table");
}

static void an_open_door_stands_before_queues_and_copies_and_nothing_else(void **state)
{
	char doors[512];

	(void)state;
	make(3, 2, 2, 125, 68);
	assert_true(OnLoad(&root, 0, 0, NULL));
	for (uint32_t i = 0; i < 125; i++)
		assert_int_equal(core.entry[i] != (void *)nothing, i == 7 || i == 9);
	for (uint32_t i = 0; i < 68; i++)
		assert_int_equal(amd.entry[i] != (void *)nothing, i == 15 || i == 16 || i == 37 || i == 39);
	gpreempt_level.doors(doors, sizeof(doors));
	assert_string_equal(doors, "rocr: open\n");
	OnUnload();
}

static void it_stays_shut_where_the_environment_says_so(void **state)
{
	(void)state;
	make(3, 2, 2, 125, 68);
	setenv("GPREEMPT_LEVEL", "off", 1);
	assert_shut("GPREEMPT_LEVEL is off");
	unsetenv("GPREEMPT_LEVEL");
}

/* Packets */

struct packet {
	uint16_t header;
	uint16_t fields[27];
	uint64_t signal;
};

struct barrier {
	uint16_t header, zeros[3];
	uint64_t waits_for[5], zero, signal;
};

#define LAUNCH 2
#define BARRIER_AND 3
#define BIT (1 << 8)
#define SYSTEM (2 << 11) /* a release fence */

static const struct gp_aql_signals signals = { .gate = 0x1000, .count = 0x2000 };

static void assert_barrier(const void *packet, uint32_t bit, uint64_t waits_for, uint64_t signal)
{
	const struct barrier *b = packet;

	assert_int_equal(b->header, BARRIER_AND | bit);
	assert_int_equal(b->waits_for[0], waits_for);
	for (int i = 1; i < 5; i++)
		assert_int_equal(b->waits_for[i], 0);
	assert_int_equal(b->signal, signal);
}

static void a_launch_without_a_signal_counts_itself(void **state)
{
	struct packet in = { .header = LAUNCH | BIT | SYSTEM, .fields = { 1, 2, 3 } }, out[3], same;

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT, &signals, out), 1);
	assert_int_equal(out[0].signal, signals.count);
	same = in;
	same.signal = signals.count;
	assert_memory_equal(&out[0], &same, sizeof(same));
	assert_int_equal(in.signal, 0); /* the program's packet is the program's */
}

static void a_launch_keeps_its_own_signal_and_is_counted_behind_it(void **state)
{
	struct packet in = { .header = LAUNCH, .signal = 0x3000 }, out[3];

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 3);
	assert_barrier(&out[0], 0, signals.gate, 0); /* as the launch: it waits for none before it */
	assert_memory_equal(&out[1], &in, sizeof(in));
	assert_barrier(&out[2], BIT, 0, signals.count);
}

static void a_gate_has_its_launchs_barrier_bit(void **state)
{
	struct packet in = { .header = LAUNCH | BIT | SYSTEM }, out[3];

	(void)state;
	assert_int_equal(gp_aql_rewrite(&in, 1, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 2);
	assert_barrier(&out[0], BIT, signals.gate, 0);
}

static void what_is_no_launch_passes_in_its_place(void **state)
{
	struct packet in[] = { { .header = BARRIER_AND | BIT, .signal = 0x4000 },
			       { .header = LAUNCH },
			       { .header = 5, .signal = 0x5000 },
			       { .header = 0, .fields = { 0xfe } } },
		      out[12];

	(void)state;
	assert_int_equal(gp_aql_launches(in, 4), 1);
	assert_int_equal(gp_aql_rewrite(in, 4, GP_ADD_COUNT | GP_ADD_GATE, &signals, out), 5);
	assert_memory_equal(&out[0], &in[0], sizeof(in[0]));
	assert_barrier(&out[1], 0, signals.gate, 0);
	assert_int_equal(out[2].header, LAUNCH);
	assert_memory_equal(&out[3], &in[2], sizeof(in[2]));
	assert_memory_equal(&out[4], &in[3], sizeof(in[3]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_known_release_has_its_places),
		cmocka_unit_test(tables_that_nobody_knows_are_left_as_they_are),
		cmocka_unit_test(an_open_door_stands_before_queues_and_copies_and_nothing_else),
		cmocka_unit_test(it_stays_shut_where_the_environment_says_so),
		cmocka_unit_test(a_launch_without_a_signal_counts_itself),
		cmocka_unit_test(a_launch_keeps_its_own_signal_and_is_counted_behind_it),
		cmocka_unit_test(a_gate_has_its_launchs_barrier_bit),
		cmocka_unit_test(what_is_no_launch_passes_in_its_place),
	};

	return cmocka_run_group_tests_name("rocr", tests, NULL, NULL);
}
