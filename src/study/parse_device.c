// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ini/ini.h"
#include "ini/keys.h"
#include "study/parse.h"

struct object {
	char title[64];
	uint32_t sharing;
	struct gpm_device device;
};

static const struct gp_key title_key = {
	.name = "title",
	.set = gp_set_text,
	.offset = offsetof(struct object, title),
	.size = sizeof(((struct object *)0)->title),
	.example = "AMD Instinct MI308X (model)",
};
static const struct gp_key sharing_key = {
	.name = "sharing",
	.set = gp_set_choice,
	.offset = offsetof(struct object, sharing),
	.choices = "concurrent timeslice", /* in the order of enum gpm_sharing */
};
static const struct gp_key constant_keys[] = {
#define KEY(key, smallest, largest) \
	{ .name = #key, \
	  .set = gp_set_count, \
	  .offset = offsetof(struct object, device.key), \
	  .min = (smallest), \
	  .max = (largest) },
	GPM_DEVICE_KEYS(KEY)
#undef KEY
};

#define NCONSTANTS (sizeof(constant_keys) / sizeof(constant_keys[0]))
#define NKEYS (NCONSTANTS + 1)

struct reader {
	struct object object;
	unsigned int section_line;
	unsigned int line[NKEYS]; /* where each key was given, 0: nowhere */
};

/* sharing is in the list of constants, but is written as a word. */
static const struct gp_key *key_at(size_t i)
{
	if (i == NCONSTANTS)
		return &title_key;
	return strcmp(constant_keys[i].name, sharing_key.name) ? &constant_keys[i] : &sharing_key;
}

static int begin_section(void *arg, const struct gp_place *at, const char *heading)
{
	struct reader *rd = arg;

	if (strcmp(heading, "device"))
		return gp_complain(at, "unknown section [%.40s]; a device file has only [device]", heading);
	if (rd->section_line)
		return gp_complain(at, "[device] again; the first is on line %u, put all into that one",
				   rd->section_line);
	rd->section_line = at->line;
	return 0;
}

static int complain_unknown_key(const struct gp_place *at, const char *word)
{
	char list[1024] = "";
	size_t used = 0;

	for (size_t i = 0; i < NKEYS && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? " " : "",
					 key_at(i)->name);
	return gp_complain_unknown(at, "key", word, list);
}

static int take_entry(void *arg, const struct gp_place *at, const char *name, const char *value)
{
	struct reader *rd = arg;
	const struct gp_key *key;
	size_t i;

	for (i = 0; i < NKEYS && strcmp(key_at(i)->name, name); i++)
		;
	if (i == NKEYS)
		return complain_unknown_key(at, name);
	key = key_at(i);
	if (rd->line[i])
		return gp_complain(at, "%s is given twice; keep this or line %u", name, rd->line[i]);
	rd->line[i] = at->line;
	return key->set(key, at, value, (char *)&rd->object + key->offset);
}

/* What does not add up begins with a key's name; that key's line is where to look. */
static unsigned int line_of_fault(const struct reader *rd, const char *fault)
{
	const size_t len = strcspn(fault, " ");

	for (size_t i = 0; i < NKEYS; i++)
		if (strlen(key_at(i)->name) == len && !strncmp(key_at(i)->name, fault, len))
			return rd->line[i];
	return rd->section_line;
}

static int check_complete(const struct reader *rd, struct gp_place *at)
{
	const char *fault;

	at->line = rd->section_line ? rd->section_line : 1;
	if (!rd->section_line)
		return gp_complain(at, "no [device] section; begin with: [device]");
	for (size_t i = 0; i < NKEYS; i++) {
		const struct gp_key *key = key_at(i);

		if (rd->line[i])
			continue;
		if (key->choices || key->size)
			return gp_complain(at, "%s is missing; add a line such as: %s = %s", key->name,
					   key->name, key->choices ? "concurrent" : key->example);
		return gp_complain(at,
				   "%s is missing; add a line: %s = a number from %" PRIu64 " to %" PRIu64,
				   key->name, key->name, key->min, key->max);
	}
	fault = gpm_device_check(&rd->object.device);
	if (!fault)
		return 0;
	at->line = line_of_fault(rd, fault);
	return gp_complain(at, "%s", fault);
}

int gp_device_parse(const char *text, const char *filename, struct gp_device_file *ret, struct gp_diag *diag)
{
	static const struct gp_ini_ops ops = { .section = begin_section, .entry = take_entry };
	struct gp_place at = { .file = filename, .diag = diag };
	struct reader rd = { 0 };
	int r;

	diag->text[0] = '\0';
	r = gp_ini_parse(text, filename, &ops, &rd, diag);
	if (r < 0)
		return r;
	rd.object.device.sharing = rd.object.sharing;
	r = check_complete(&rd, &at);
	if (r < 0)
		return r;
	gp_file_stem(filename, ret->name, sizeof(ret->name));
	memcpy(ret->title, rd.object.title, sizeof(ret->title));
	ret->device = rd.object.device;
	return 0;
}
