// SPDX-License-Identifier: MIT
#include "discover/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_VALUE 512

enum op { EQUAL, AT_LEAST, AT_MOST };

static const char *const field_names[] = { "pid",    "uid",       "command", "priority", "address",
					   "cgroup", "container", "pod",     "tag" };

#define FIELD_LIST "pid, uid, command, priority, address, cgroup, container, pod or tag"

int gp_rule_complain(const struct gp_complaint *to, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (to->text && to->size)
		vsnprintf(to->text, to->size, format, args);
	va_end(args);
	if (to->text && to->size)
		gp_text_clean(to->text);
	return -EINVAL;
}

void gp_rules_free(struct gp_array *rules)
{
	struct gp_rule *all = rules->at;

	for (size_t i = 0; i < rules->count; i++)
		free(all[i].pattern);
	free(rules->at);
	*rules = (struct gp_array){ 0 };
}

static int is_text(enum gp_rule_field field)
{
	return field == GP_RULE_COMMAND || field == GP_RULE_CGROUP || field == GP_RULE_CONTAINER ||
	       field == GP_RULE_POD || field == GP_RULE_TAG;
}

static int take_field(struct gp_span *s, enum gp_rule_field *ret)
{
	for (int i = 0; i < GP_RULE_FIELDS; i++) {
		struct gp_span rest = *s;

		if (!gp_span_take(&rest, field_names[i]))
			continue;
		gp_span_trim(&rest);
		if (rest.at < rest.end && strchr("=<>", *rest.at)) {
			*s = rest;
			*ret = (enum gp_rule_field)i;
			return 1;
		}
	}
	return 0;
}

static int take_op(struct gp_span *s, enum op *ret)
{
	if (gp_span_take(s, ">="))
		*ret = AT_LEAST;
	else if (gp_span_take(s, "<="))
		*ret = AT_MOST;
	else if (gp_span_take(s, "="))
		*ret = EQUAL;
	else
		return 0;
	gp_span_trim(s);
	return 1;
}

static int take_range(struct gp_rule *rule, struct gp_span s, const struct gp_complaint *to)
{
	if (!gp_span_number(&s, &rule->low))
		return gp_rule_complain(to, "address: write 0x7f0000000000 or 0x7f0000000000-0x7fffffffffff");
	rule->high = rule->low;
	gp_span_trim(&s);
	if (gp_span_take(&s, "-")) {
		gp_span_trim(&s);
		if (!gp_span_number(&s, &rule->high))
			s.at = NULL;
	}
	if (s.at != s.end || rule->high < rule->low)
		return gp_rule_complain(
			to,
			"address: write 0x7f0000000000 or 0x7f0000000000-0x7fffffffffff, the lower one first");
	return 0;
}

static int take_number(struct gp_rule *rule, enum op op, struct gp_span s, const struct gp_complaint *to)
{
	const char *name = field_names[rule->field];
	uint32_t number, most = rule->field == GP_RULE_PRIORITY ? GP_MAX_PRIORITY : UINT32_MAX;

	if (!gp_span_u32(&s, &number) || s.at != s.end || number > most)
		return gp_rule_complain(to, "%s: a whole number from 0 to %u is needed", name, most);
	rule->low = op == AT_MOST ? 0 : number;
	rule->high = op == AT_LEAST ? UINT32_MAX : number;
	return 0;
}

static int take_pattern(struct gp_rule *rule, struct gp_span s, const struct gp_complaint *to)
{
	if (gp_span_len(&s) > MAX_VALUE)
		return gp_rule_complain(to, "%s: at most %d characters", field_names[rule->field], MAX_VALUE);
	rule->pattern = strndup(s.at, gp_span_len(&s));
	return rule->pattern ? 0 : -ENOMEM;
}

/* "command=train*" */
static int take_condition(struct gp_rule *rule, struct gp_span s, const struct gp_complaint *to)
{
	enum op op;

	gp_span_trim(&s);
	if (!take_field(&s, &rule->field))
		return gp_rule_complain(to,
					"'%.*s' is no condition; write %s, then =, >= or <=, then a value",
					(int)(gp_span_len(&s) > 40 ? 40 : gp_span_len(&s)), s.at, FIELD_LIST);
	if (!take_op(&s, &op))
		return gp_rule_complain(to, "%s: write =, >= or <= behind it", field_names[rule->field]);
	if (op != EQUAL && rule->field != GP_RULE_PRIORITY)
		return gp_rule_complain(to, "%s: only = is possible; >= and <= are for priority",
					field_names[rule->field]);
	if (s.at == s.end)
		return gp_rule_complain(to, "%s: the value is missing", field_names[rule->field]);
	if (rule->field == GP_RULE_ADDRESS)
		return take_range(rule, s, to);
	return is_text(rule->field) ? take_pattern(rule, s, to) : take_number(rule, op, s, to);
}

int gp_rule_add_condition(struct gp_array *rules, uint32_t client_class, struct gp_span s, const char *where,
			  const struct gp_complaint *to)
{
	struct gp_rule rule = { .client_class = client_class };
	struct gp_rule *added;
	char condition[sizeof(rule.label)];
	int r = take_condition(&rule, s, to);

	if (r < 0)
		return r;
	gp_span_trim(&s);
	gp_span_copy(&s, condition, sizeof(condition));
	snprintf(rule.label, sizeof(rule.label), "%.60s%s%.90s", where ? where : "", where ? " " : "",
		 condition);
	gp_text_clean(rule.label);
	added = gp_array_add(rules, sizeof(*added));
	if (!added) {
		free(rule.pattern);
		return -ENOMEM;
	}
	*added = rule;
	return 0;
}

/* "online:command=serve*" */
int gp_rule_add(struct gp_array *rules, struct gp_span s, const char *where, const struct gp_complaint *to)
{
	uint32_t client_class;

	gp_span_trim(&s);
	if (gp_span_take(&s, "online:"))
		client_class = GP_CLASS_ONLINE;
	else if (gp_span_take(&s, "offline:"))
		client_class = GP_CLASS_OFFLINE;
	else
		return gp_rule_complain(to, "'%.*s' must begin with online: or offline:",
					(int)(gp_span_len(&s) > 40 ? 40 : gp_span_len(&s)), s.at);
	return gp_rule_add_condition(rules, client_class, s, where, to);
}

int gp_threshold_take(struct gp_span s, const char *name, struct gp_threshold *ret,
		      const struct gp_complaint *to)
{
	uint32_t value;

	gp_span_trim(&s);
	if (gp_span_take(&s, "off") && s.at == s.end) {
		*ret = (struct gp_threshold){ 1, GP_NO_THRESHOLD };
		return 0;
	}
	if (!gp_span_u32(&s, &value) || s.at != s.end || value > GP_MAX_PRIORITY)
		return gp_rule_complain(to, "%s: a whole number from 0 to %d is needed, or off", name,
					GP_MAX_PRIORITY);
	*ret = (struct gp_threshold){ 1, value };
	return 0;
}

/* * stands for anything, slashes too, and ? for one character. */
static int matches_pattern(const char *pattern, const char *text)
{
	const char *star = NULL, *back = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			back = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text = ++back;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

/* Empty is unknown, and * does not match it. */
static int is_like(const struct gp_rule *rule, const char *text)
{
	return text && text[0] && matches_pattern(rule->pattern, text);
}

static int is_within(const struct gp_rule *rule, uint64_t value)
{
	return value >= rule->low && value <= rule->high;
}

/* Two slashes ask for "NAMESPACE/POD/NAME". With fewer it is "POD/NAME", in any namespace. */
static int is_named(const struct gp_rule *rule, const struct gp_found_client *c)
{
	char whole[sizeof(c->kube_namespace) + sizeof(c->container_name)];
	const char *slash = strchr(rule->pattern, '/');

	if (!slash || !strchr(slash + 1, '/'))
		return is_like(rule, c->container_name);
	if (!c->kube_namespace[0] || !c->container_name[0])
		return 0;
	(void)snprintf(whole, sizeof(whole), "%s/%s", c->kube_namespace, c->container_name);
	return is_like(rule, whole);
}

static int is_container(const struct gp_rule *rule, const struct gp_found_client *c)
{
	return is_like(rule, c->container) || is_named(rule, c) ||
	       (strlen(rule->pattern) >= 4 && !strncmp(c->container, rule->pattern, strlen(rule->pattern)));
}

static int client_matches(const struct gp_rule *rule, const struct gp_found_client *c)
{
	switch (rule->field) {
	case GP_RULE_PID:
		return is_within(rule, c->pid);
	case GP_RULE_UID:
		return c->uid != UINT32_MAX && is_within(rule, c->uid);
	case GP_RULE_COMMAND:
		return is_like(rule, c->name);
	case GP_RULE_CGROUP:
		return is_like(rule, c->cgroup);
	case GP_RULE_CONTAINER:
		return is_container(rule, c);
	case GP_RULE_POD:
		return is_like(rule, c->pod);
	default:
		return 0;
	}
}

static int queue_matches(const struct gp_rule *rule, const struct gp_found_queue *q)
{
	switch (rule->field) {
	case GP_RULE_PID:
		return q->pid && is_within(rule, q->pid);
	case GP_RULE_PRIORITY:
		return q->from[GP_FIELD_PRIORITY] && is_within(rule, q->priority);
	case GP_RULE_ADDRESS:
		return q->from[GP_FIELD_RING] && is_within(rule, q->ring);
	default:
		return 0;
	}
}

/* What a process was started as is as good as that tag. */
static const char *tag_of(const struct gp_class_subject *s)
{
	if (s->tag)
		return s->tag;
	return s->seen == GP_CLASS_ONLINE ? "ONLINE_AI" : s->seen == GP_CLASS_OFFLINE ? "OFFLINE_AI" : NULL;
}

int gp_rule_matches(const struct gp_rule *rule, const struct gp_class_subject *s)
{
	if (rule->field == GP_RULE_TAG)
		return is_like(rule, tag_of(s));
	return (s->client && client_matches(rule, s->client)) || (s->queue && queue_matches(rule, s->queue));
}
