// SPDX-License-Identifier: MIT
/* classes.ini: gpreempt-classes(5) is its description. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "discover/rules.h"

#define MAX_FILE (1024 * 1024)

/* A classes.ini being read. */
struct file {
	const char *path, *name;
	uint32_t line;
	enum { NO_SECTION, CLASS_SECTION, SETTINGS_SECTION, UNKNOWN_SECTION } section;
	uint32_t client_class; /* of a class's section */
	struct gp_array rules;
	struct gp_threshold threshold;
	struct gp_complaint to; /* the room that is left */
	int is_bad;
};

/* Puts the place before a sentence. After the first, one that does not fit is left out. */
static void complain_at(struct file *f, const char *why)
{
	char line[PATH_MAX + 256];
	const struct gp_complaint one = { line, sizeof(line) };
	size_t len;

	(void)gp_rule_complain(&one, "%s:%u: %s", f->path, f->line, why);
	len = (size_t)snprintf(f->to.text, f->to.size, "%s%s", f->is_bad ? "\n" : "", line);
	if (len < f->to.size) {
		f->to.text += len;
		f->to.size -= len;
	} else if (f->is_bad && f->to.size) {
		f->to.text[0] = '\0';
	}
	f->is_bad = 1;
}

static void heading(struct file *f, struct gp_span s)
{
	if (gp_span_take(&s, "[online]") && s.at == s.end) {
		f->section = CLASS_SECTION;
		f->client_class = GP_CLASS_ONLINE;
	} else if (gp_span_take(&s, "[offline]") && s.at == s.end) {
		f->section = CLASS_SECTION;
		f->client_class = GP_CLASS_OFFLINE;
	} else if (gp_span_take(&s, "[settings]") && s.at == s.end) {
		f->section = SETTINGS_SECTION;
	} else {
		f->section = UNKNOWN_SECTION;
		complain_at(f, "no such section; there are [online], [offline] and [settings]");
	}
}

static int setting(struct file *f, struct gp_span s, const struct gp_complaint *to)
{
	if (gp_span_take(&s, "online_priority")) {
		gp_span_trim(&s);
		if (gp_span_take(&s, "="))
			return gp_threshold_take(s, "online_priority", &f->threshold, to);
	}
	return gp_rule_complain(to, "the one setting is: online_priority = 10");
}

/* Under a section that is none, nothing more is wrong. */
static int condition(struct file *f, struct gp_span s, const struct gp_complaint *to)
{
	char where[64];

	if (f->section == UNKNOWN_SECTION)
		return 0;
	if (f->section == SETTINGS_SECTION)
		return setting(f, s, to);
	if (f->section == NO_SECTION)
		return gp_rule_complain(to,
					"it stands under no section; write [online] or [offline] above it");
	snprintf(where, sizeof(where), "%.48s:%u", f->name, f->line);
	return gp_rule_add_condition(&f->rules, f->client_class, s, where, to);
}

/* What is wrong is told, and the rest is read, so that all of it is told. */
static int file_line(struct file *f, struct gp_span s)
{
	char why[160] = "out of memory";
	const struct gp_complaint to = { why, sizeof(why) };
	int r = 0;

	if (s.at < s.end && *s.at == '[')
		heading(f, s);
	else if (s.at < s.end)
		r = condition(f, s, &to);
	if (r < 0)
		complain_at(f, why);
	return r == -EINVAL ? 0 : r;
}

/* Up to a ; or # that begins the line or follows a space. */
static struct gp_span without_comment(struct gp_span s)
{
	for (const char *p = s.at; p < s.end; p++)
		if ((*p == ';' || *p == '#') && (p == s.at || p[-1] == ' ' || p[-1] == '\t')) {
			s.end = p;
			break;
		}
	gp_span_trim(&s);
	return s;
}

static int read_lines(struct file *f, struct gp_span all)
{
	struct gp_span line;
	int r = 0;

	(void)gp_span_take(&all, "\xef\xbb\xbf"); /* a byte order mark */
	while (r == 0 && gp_span_split(&all, '\n', &line)) {
		f->line++;
		gp_span_trim(&line);
		r = file_line(f, without_comment(line));
	}
	return r < 0 ? r : f->is_bad ? -EINVAL : 0;
}

int gp_rules_read(const char *path, struct gp_array *rules, struct gp_threshold *threshold,
		  const struct gp_complaint *to)
{
	const char *slash = strrchr(path, '/');
	struct file f = { .path = path, .name = slash ? slash + 1 : path, .to = *to };
	char *text = malloc(MAX_FILE + 2);
	int n = text ? gp_read_at(AT_FDCWD, path, text, MAX_FILE + 2) : -ENOMEM;
	int r;

	if (n < 0) {
		(void)gp_rule_complain(to, "%s: %s", path, strerror(-n));
		free(text);
		return n;
	}
	if (n > MAX_FILE)
		r = gp_rule_complain(to, "%s: longer than %d bytes", path, MAX_FILE);
	else
		r = read_lines(&f, (struct gp_span){ text, text + n });
	free(text);
	*rules = f.rules;
	*threshold = f.threshold;
	return r;
}
