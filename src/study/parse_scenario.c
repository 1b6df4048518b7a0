// SPDX-License-Identifier: MIT
/* Reads the sections of a scenario file into a draft; draft.c makes a scenario of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "study/draft.h"
#include "ini/ini.h"
#include "ini/words.h"

static const struct gp_section_kind *const kinds[] = {
	&gp_scenario_kind, &gp_online_kind, &gp_offline_kind, &gp_work_kind, &gp_sweep_kind, &gp_cluster_kind,
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static int add_group(struct gp_draft *d, const struct gp_place *at, struct gp_section *s)
{
	struct gp_group_draft *g = &d->groups[d->ngroups];

	if (d->ngroups == GP_MAX_GROUPS)
		return gp_complain(
			at, "more than %d groups; put clients that are alike into one with: clients = N",
			GP_MAX_GROUPS);
	d->ngroups++;
	g->section = s;
	g->group.client_class = s->kind == &gp_online_kind ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE;
	g->group.arrival = GP_ARRIVAL_ALWAYS;
	memcpy(g->group.name, s->name, sizeof(g->group.name));
	s->object = g;
	return 0;
}

static int add_work(struct gp_draft *d, const struct gp_place *at, struct gp_section *s)
{
	struct gp_work_draft *w = &d->works[d->nworks];
	struct gp_work built_in;

	if (d->nworks == GP_MAX_WORKS)
		return gp_complain(at, "more than %d works; leave some out", GP_MAX_WORKS);
	if (gp_work_by_name(s->name, &built_in) == 0)
		return gp_complain(at, "work %s is built in and stays as it is; choose another name",
				   s->name);
	d->nworks++;
	w->section = s;
	memcpy(w->work.name, s->name, sizeof(w->work.name));
	s->object = w;
	return 0;
}

static int add_object(struct gp_draft *d, const struct gp_place *at, struct gp_section *s)
{
	if (s->kind == &gp_work_kind)
		return add_work(d, at, s);
	if (s->kind->named)
		return add_group(d, at, s);
	s->object = d;
	return 0;
}

static int parse_heading(const struct gp_place *at, const char *heading, struct gp_section *s)
{
	const struct gp_key name_key = { .name = "name", .size = sizeof(s->name) };
	char kind[32], name[64] = "", more[2];
	size_t i;

	if (!gp_word_next(&heading, kind, sizeof(kind)))
		return gp_complain(at, "an empty section; write it as in: [online serve]");
	for (i = 0; i < NKINDS && strcmp(kinds[i]->name, kind); i++)
		;
	if (i == NKINDS)
		return gp_complain_unknown(at, "section", kind, "scenario online offline work sweep cluster");
	s->kind = kinds[i];
	(void)gp_word_next(&heading, name, sizeof(name));
	if (!s->kind->named && name[0])
		return gp_complain(at, "[%s] has no name; write just: [%s]", kind, kind);
	if (s->kind->named && (!name[0] || gp_word_next(&heading, more, sizeof(more))))
		return gp_complain(at, "[%s] needs one name; write it as in: [%s mine]", kind, kind);
	return name[0] ? gp_set_name(&name_key, at, name, s->name) : 0;
}

/* Groups share their names, whatever their class: the page shows them side by side. */
static int check_new_section(const struct gp_draft *d, const struct gp_place *at, const struct gp_section *s)
{
	for (size_t i = 0; i < d->nsections; i++) {
		const struct gp_section *other = &d->sections[i];
		int alike = (other->kind == &gp_work_kind) == (s->kind == &gp_work_kind);

		if (s->kind->named ? !other->kind->named || !alike || strcmp(other->name, s->name)
				   : other->kind != s->kind)
			continue;
		if (s->kind->named)
			return gp_complain(at, "the name %s is taken by line %u; choose another", s->name,
					   other->line);
		return gp_complain(at, "[%s] again; the first is on line %u, put all into that one",
				   s->kind->name, other->line);
	}
	return 0;
}

static int begin_section(void *arg, const struct gp_place *at, const char *heading)
{
	struct gp_section s = { .line = at->line };
	struct gp_draft *d = arg;
	int r;

	r = parse_heading(at, heading, &s);
	if (r == 0)
		r = check_new_section(d, at, &s);
	if (r < 0)
		return r;
	if (d->nsections == GP_MAX_SECTIONS)
		return gp_complain(at, "more than %d sections; leave some out", GP_MAX_SECTIONS);
	d->sections[d->nsections] = s;
	r = add_object(d, at, &d->sections[d->nsections]);
	if (r < 0)
		return r;
	d->nsections++;
	return 0;
}

static int complain_unknown_key(const struct gp_place *at, const struct gp_section *s, const char *name)
{
	const struct gp_section_kind *online = &gp_online_kind;
	char list[256];

	for (size_t i = 0; s->kind == &gp_offline_kind && i < online->nkeys; i++)
		if (!strcmp(online->keys[i].name, name))
			return gp_complain(at, "an offline group always has work; leave %s out", name);
	gp_keys_list(s->kind->keys, s->kind->nkeys, list, sizeof(list));
	return gp_complain_unknown(at, "key", name, list);
}

static int take_entry(void *arg, const struct gp_place *at, const char *name, const char *value)
{
	struct gp_draft *d = arg;
	struct gp_section *s = &d->sections[d->nsections - 1];
	const struct gp_key *key;
	size_t i;

	for (i = 0; i < s->kind->nkeys && strcmp(s->kind->keys[i].name, name); i++)
		;
	if (i == s->kind->nkeys)
		return complain_unknown_key(at, s, name);
	if (s->key_line[i])
		return gp_complain(at, "%s is given twice; keep this or line %u", name, s->key_line[i]);
	key = &s->kind->keys[i];
	s->key_line[i] = at->line;
	return key->set(key, at, value, (char *)s->object + key->offset);
}

/* As a cluster, whether it is one or not. */
static int parse(const char *text, const char *filename, const struct gp_parse_env *env,
		 struct gp_cluster *ret, struct gp_diag *diag)
{
	static const struct gp_ini_ops ops = { .section = begin_section, .entry = take_entry };
	struct gp_place at = { .file = filename, .diag = diag };
	struct gp_draft *d;
	int r;

	diag->text[0] = '\0';
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)gp_complain(&at, "out of memory");
		return -ENOMEM;
	}
	d->file = filename;
	d->env = env;
	d->diag = diag;
	r = gp_ini_parse(text, filename, &ops, d, diag);
	if (r == 0)
		r = gp_draft_finish(d);
	if (r == 0)
		*ret = d->cluster;
	free(d);
	return r;
}

int gp_scenario_parse(const char *text, const char *filename, const struct gp_parse_env *env,
		      struct gp_scenario *ret, struct gp_diag *diag)
{
	const struct gp_place at = { .file = filename, .diag = diag };
	struct gp_cluster cl;
	int r;

	r = parse(text, filename, env, &cl, diag);
	if (r < 0)
		return r;
	if (cl.gpus) {
		gp_cluster_free(&cl);
		return gp_complain(&at, "this is a cluster; run it with: gpreempt sim --cluster %.80s",
				   filename);
	}
	*ret = cl.scenario;
	return 0;
}

int gp_cluster_parse(const char *text, const char *filename, const struct gp_parse_env *env,
		     struct gp_cluster *ret, struct gp_diag *diag)
{
	const struct gp_place at = { .file = filename, .diag = diag };
	struct gp_cluster cl;
	int r;

	r = parse(text, filename, env, &cl, diag);
	if (r < 0)
		return r;
	if (!cl.gpus) {
		gp_cluster_free(&cl);
		return gp_complain(
			&at, "no section [cluster] in it; add one with: gpus = 10, or leave --cluster out");
	}
	*ret = cl;
	return 0;
}

void gp_cluster_free(struct gp_cluster *cl)
{
	free(cl->jobs);
	gp_scenario_free(&cl->scenario);
	*cl = (struct gp_cluster){ 0 };
}

void gp_scenario_free(struct gp_scenario *sc)
{
	for (uint32_t i = 0; i < sc->ngroups; i++) {
		free(sc->groups[i].trace_ns);
		free(sc->groups[i].trace_client);
		if (sc->groups[i].curve)
			gp_curve_free(sc->groups[i].curve);
		free(sc->groups[i].curve);
	}
	*sc = (struct gp_scenario){ 0 };
}
