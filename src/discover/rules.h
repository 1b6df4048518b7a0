/* SPDX-License-Identifier: MIT */
/* One rule: a class, and a condition on a client or one of its queues. */
#ifndef GP_DISCOVER_RULES_H
#define GP_DISCOVER_RULES_H

#include "discover/classes.h"
#include "discover/scan.h"

#define GP_MAX_PRIORITY 15 /* KFD_MAX_QUEUE_PRIORITY, include/uapi/linux/kfd_ioctl.h, Linux 6.12 */
#define GP_NO_THRESHOLD (GP_MAX_PRIORITY + 1)

enum gp_rule_field {
	GP_RULE_PID,
	GP_RULE_UID,
	GP_RULE_COMMAND,
	GP_RULE_PRIORITY,
	GP_RULE_ADDRESS,
	GP_RULE_CGROUP,
	GP_RULE_CONTAINER,
	GP_RULE_POD,
	GP_RULE_TAG,
	GP_RULE_FIELDS
};

struct gp_rule {
	uint32_t client_class;
	enum gp_rule_field field;
	uint64_t low, high; /* of number fields, both included */
	char *pattern;      /* of text fields */
	char label[sizeof(((struct gp_class_verdict *)0)->rule)];
};

struct gp_threshold {
	int is_set;
	uint32_t value; /* from it on queues are online; GP_NO_THRESHOLD: priorities say nothing */
};

/* Where a sentence about a mistake goes; text may be NULL. */
struct gp_complaint {
	char *text;
	size_t size;
};

/* Always -EINVAL. */
int gp_rule_complain(const struct gp_complaint *to, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "command=train*", and the same with its class before it, "offline:command=train*". */
int gp_rule_add_condition(struct gp_array *rules, uint32_t client_class, struct gp_span s, const char *where,
			  const struct gp_complaint *to);
int gp_rule_add(struct gp_array *rules, struct gp_span s, const char *where, const struct gp_complaint *to);
int gp_threshold_take(struct gp_span s, const char *name, struct gp_threshold *ret,
		      const struct gp_complaint *to);
int gp_rule_matches(const struct gp_rule *rule, const struct gp_class_subject *s);
void gp_rules_free(struct gp_array *rules);

/* A classes.ini, into an empty array; what is right in it is there beside mistakes too, each told on a line
 * of its own. */
int gp_rules_read(const char *path, struct gp_array *rules, struct gp_threshold *threshold,
		  const struct gp_complaint *to);

#endif
