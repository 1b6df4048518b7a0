/* SPDX-License-Identifier: MIT */
/* Which class a queue has, and which rule says so. */
#ifndef GP_DISCOVER_CLASSES_H
#define GP_DISCOVER_CLASSES_H

#include <gpreempt/gpreempt.h>

#include "discover/discover.h"

/*
 * Rules are tried in order and the first that matches wins: the command line's, then the environment's, then
 * the file's, then the tag a process gave itself, then the priority threshold.  Tag, environment of the
 * process and priority are the process's own word: they may make it offline, but online only if its owner is
 * root or in the group (trusted).
 */
struct gp_classes;

/* What a rule may look at. */
struct gp_class_subject {
	const struct gp_found_client *client; /* may be NULL: nothing known */
	const struct gp_found_queue *queue;   /* may be NULL: the process as a whole */
	const char *tag;                      /* AMD_QUEUE_TAG as the agent read it, or NULL */
	int trusted;                          /* owner is root or in group gpreempt */
	uint32_t seen; /* the class that GPREEMPT_CLASS or the tag says, as the agent read them */
};

/* rule: "classes.ini:7 command=train*", "priority 11 >= 10", "tag ONLINE_AI refused: ...", "no rule" */
struct gp_class_verdict {
	uint32_t client_class; /* enum gp_class */
	char rule[96];
};

int gp_classes_new(struct gp_classes **ret);
void gp_classes_free(struct gp_classes *classes);
/*
 * One rule as on the command line, a class and a condition: "online:pid=123", "offline:command=train*",
 * "online:priority>=10", "offline:address=0x7f0000000000-0x7fffffffffff", "online:cgroup=/kubepods*",
 * "offline:tag=OFFLINE_AI", and likewise pod=, container=, uid=.  where (NULL: nothing) goes before the rule
 * in verdicts.  -EINVAL, with a sentence that says what is wrong and what is allowed.
 */
int gp_classes_add(struct gp_classes *classes, const char *rule, const char *where, char *error, size_t size);
/*
 * A classes.ini, gpreempt-classes(5).  -EINVAL with a line for each mistake, file:line in front of it, or
 * -ENOENT and others if it cannot be read: nothing of it is kept then.
 */
int gp_classes_read(struct gp_classes *classes, const char *path, char *error, size_t size);
/* GPREEMPT_CLASSES (rules separated by ;) and GPREEMPT_ONLINE_PRIORITY (the threshold, default 10). */
int gp_classes_environment(struct gp_classes *classes, char *error, size_t size);
void gp_classes_judge(const struct gp_classes *classes, const struct gp_class_subject *subject,
		      struct gp_class_verdict *ret);

#endif
