/* SPDX-License-Identifier: MIT */
/* A scenario while it is being read: what was given, and on which line. */
#ifndef GP_STUDY_DRAFT_H
#define GP_STUDY_DRAFT_H

#include "ini/keys.h"
#include "study/parse.h"

#define GP_MAX_WORKS 16
#define GP_MAX_SECTIONS (GP_MAX_GROUPS + GP_MAX_WORKS + 3)
#define GP_MAX_KEYS 24 /* in one section */
#define GP_PATH_TEXT 192

struct gp_section_kind {
	const char *name;
	const struct gp_key *keys;
	size_t nkeys;
	int named; /* written with a name: [work NAME] */
};

struct gp_section {
	const struct gp_section_kind *kind;
	char name[GP_SCENARIO_NAME];
	void *object; /* what its keys' offsets count from */
	unsigned int line;
	unsigned int key_line[GP_MAX_KEYS]; /* 0: not given */
};

struct gp_group_draft {
	struct gp_group group;
	char work[GP_SCENARIO_NAME];
	char trace[GP_PATH_TEXT];
	char trace_begin[GP_SCENARIO_NAME];
	uint64_t load_permille;
	struct gp_curve curve;
	struct gp_section *section;
};

struct gp_work_draft {
	struct gp_work work;
	struct gp_section *section;
};

struct gp_draft {
	struct gp_scenario scenario;
	struct gp_cluster cluster; /* all but its scenario */
	char device[GP_PATH_TEXT];
	struct gp_section sections[GP_MAX_SECTIONS];
	struct gp_group_draft groups[GP_MAX_GROUPS];
	struct gp_work_draft works[GP_MAX_WORKS];
	size_t nsections;
	size_t ngroups;
	size_t nworks;
	const char *file;
	const struct gp_parse_env *env;
	struct gp_diag *diag;
};

extern const struct gp_section_kind gp_scenario_kind;
extern const struct gp_section_kind gp_online_kind;
extern const struct gp_section_kind gp_offline_kind;
extern const struct gp_section_kind gp_work_kind;
extern const struct gp_section_kind gp_sweep_kind;
extern const struct gp_section_kind gp_cluster_kind;

/* Puts the sections together and checks what they say together. */
int gp_draft_finish(struct gp_draft *d);
/* The line of a key, 0 if it was not given. */
unsigned int gp_section_line(const struct gp_section *s, const char *key);
/* The key's line if it was given, else the section's. */
struct gp_place gp_draft_place(const struct gp_draft *d, const struct gp_section *s, const char *key);
/* The first section of a kind, NULL if there is none. */
struct gp_section *gp_draft_section(struct gp_draft *d, const struct gp_section_kind *kind);

/* draft_cluster.c: what is special where there is a section [cluster], and where there is none */
int gp_draft_check_cluster(struct gp_draft *d);
int gp_draft_finish_curve(struct gp_draft *d, struct gp_group_draft *g);
int gp_draft_load_jobs(struct gp_draft *d, struct gp_group_draft *g);

#endif
