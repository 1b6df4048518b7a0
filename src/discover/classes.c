// SPDX-License-Identifier: MIT
#include "discover/classes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "discover/rules.h"

#define DEFAULT_THRESHOLD 10

/* Where a rule came from, in the order in which they are tried. */
enum rank { RANK_CALLER, RANK_ENVIRONMENT, RANK_FILE, RANKS };

struct gp_classes {
	struct gp_array rules[RANKS]; /* struct gp_rule */
	struct gp_threshold threshold[RANKS];
};

int gp_classes_new(struct gp_classes **ret)
{
	struct gp_classes *classes = calloc(1, sizeof(*classes));

	if (!classes)
		return -ENOMEM;
	*ret = classes;
	return 0;
}

void gp_classes_free(struct gp_classes *classes)
{
	if (!classes)
		return;
	for (int i = 0; i < RANKS; i++)
		gp_rules_free(&classes->rules[i]);
	free(classes);
}

int gp_classes_add(struct gp_classes *classes, const char *rule, const char *where, char *error, size_t size)
{
	const struct gp_complaint to = { error, size };

	return gp_rule_add(&classes->rules[RANK_CALLER], gp_span_of(rule), where, &to);
}

/* Either all of what was read, or nothing. */
static int keep(struct gp_array *rules, struct gp_array *read, int r)
{
	const struct gp_rule *all = read->at;
	size_t before = rules->count;

	for (size_t i = 0; r == 0 && i < read->count; i++) {
		struct gp_rule *to = gp_array_add(rules, sizeof(*to));

		if (to)
			*to = all[i];
		else
			r = -ENOMEM;
	}
	if (r == 0) {
		free(read->at);
		return 0;
	}
	rules->count = before;
	gp_rules_free(read);
	return r;
}

int gp_classes_environment(struct gp_classes *classes, char *error, size_t size)
{
	const char *rules = secure_getenv("GPREEMPT_CLASSES");
	const char *priority = secure_getenv("GPREEMPT_ONLINE_PRIORITY");
	struct gp_threshold threshold = { 0 };
	struct gp_array read = { 0 };
	const struct gp_complaint to = { error, size };
	struct gp_span all = gp_span_of(rules ? rules : ""), one;
	int r = 0;

	while (r == 0 && gp_span_split(&all, ';', &one)) {
		gp_span_trim(&one);
		if (one.at < one.end)
			r = gp_rule_add(&read, one, "GPREEMPT_CLASSES", &to);
	}
	if (r == 0 && priority && priority[0])
		r = gp_threshold_take(gp_span_of(priority), "GPREEMPT_ONLINE_PRIORITY", &threshold, &to);
	r = keep(&classes->rules[RANK_ENVIRONMENT], &read, r);
	if (r == 0)
		classes->threshold[RANK_ENVIRONMENT] = threshold;
	return r;
}

int gp_classes_read(struct gp_classes *classes, const char *path, char *error, size_t size)
{
	const struct gp_complaint to = { error, size };
	struct gp_threshold threshold = { 0 };
	struct gp_array read = { 0 };
	int r = gp_rules_read(path, &read, &threshold, &to);

	r = keep(&classes->rules[RANK_FILE], &read, r);
	if (r == 0 && threshold.is_set)
		classes->threshold[RANK_FILE] = threshold;
	return r;
}

/* A verdict in the making: what is refused is kept in case nobody decides. */
struct judgement {
	const struct gp_class_subject *subject;
	struct gp_class_verdict *verdict;
	int refused;
};

/* Of a process whose own word does not count. 43 characters, for what stands before it. */
static const char *why_not_trusted(const struct gp_found_client *c)
{
	if (c && (c->container[0] || (c->inner_pid && c->inner_pid != c->pid)))
		return "a container's root and groups do not count";
	if (c && c->uid == 0)
		return "root without CAP_SYS_ADMIN does not count";
	return "owner is neither root nor in group gpreempt";
}

/* 1: that is the verdict. own_word: the process itself said so, and makes itself online only if trusted. */
static int decide(struct judgement *j, uint32_t client_class, const char *label, int own_word)
{
	if (client_class == GP_CLASS_ONLINE && own_word && !j->subject->trusted) {
		if (!j->refused) {
			snprintf(j->verdict->rule, sizeof(j->verdict->rule), "%.42s refused: %s", label,
				 why_not_trusted(j->subject->client));
			gp_text_clean(j->verdict->rule);
		}
		j->refused = 1;
		return 0;
	}
	j->verdict->client_class = client_class;
	snprintf(j->verdict->rule, sizeof(j->verdict->rule), "%s", label);
	return 1;
}

static int judge_by_rules(struct judgement *j, const struct gp_array *rules)
{
	const struct gp_rule *all = rules->at;

	for (size_t i = 0; i < rules->count; i++) {
		int own_word = all[i].field == GP_RULE_TAG || all[i].field == GP_RULE_PRIORITY;

		if (gp_rule_matches(&all[i], j->subject) &&
		    decide(j, all[i].client_class, all[i].label, own_word))
			return 1;
	}
	return 0;
}

/* GPREEMPT_CLASS goes before the tag; who has read them has seen to that. */
static int judge_by_own_word(struct judgement *j)
{
	static const struct {
		uint32_t client_class;
		const char *tag, *by_tag, *by_class;
	} words[] = { { GP_CLASS_ONLINE, "ONLINE_AI", "tag ONLINE_AI", "--online (GPREEMPT_CLASS)" },
		      { GP_CLASS_OFFLINE, "OFFLINE_AI", "tag OFFLINE_AI", "--offline (GPREEMPT_CLASS)" } };
	const struct gp_class_subject *s = j->subject;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		int is_tag = s->tag && !strcmp(s->tag, words[i].tag);

		if (s->seen ? s->seen == words[i].client_class : is_tag)
			return decide(j, words[i].client_class, is_tag ? words[i].by_tag : words[i].by_class,
				      1);
	}
	return 0;
}

static uint32_t threshold_of(const struct gp_classes *classes)
{
	for (int i = 0; i < RANKS; i++)
		if (classes->threshold[i].is_set)
			return classes->threshold[i].value;
	return DEFAULT_THRESHOLD;
}

static int judge_by_priority(struct judgement *j, uint32_t threshold)
{
	const struct gp_found_queue *q = j->subject->queue;
	char label[64];

	if (!q || !q->from[GP_FIELD_PRIORITY] || threshold == GP_NO_THRESHOLD)
		return 0;
	if (q->priority >= threshold) {
		snprintf(label, sizeof(label), "priority %u >= %u", q->priority, threshold);
		return decide(j, GP_CLASS_ONLINE, label, 1);
	}
	if (j->refused) {
		j->verdict->client_class =
			GP_CLASS_OFFLINE; /* why it is not online says more than the number */
		return 1;
	}
	snprintf(label, sizeof(label), "priority %u < %u", q->priority, threshold);
	return decide(j, GP_CLASS_OFFLINE, label, 1);
}

void gp_classes_judge(const struct gp_classes *classes, const struct gp_class_subject *subject,
		      struct gp_class_verdict *ret)
{
	struct judgement j = { .subject = subject, .verdict = ret };

	ret->client_class = GP_CLASS_UNKNOWN;
	snprintf(ret->rule, sizeof(ret->rule), "no rule");
	for (int i = 0; i < RANKS; i++)
		if (judge_by_rules(&j, &classes->rules[i]))
			return;
	if (!judge_by_own_word(&j))
		(void)judge_by_priority(&j, threshold_of(classes));
}
