// SPDX-License-Identifier: MIT
/*
 * inih tells its handler neither the line nor that a section begins, unless it is
 * built to, and Debian's is not.  It does read by a function of ours, so that
 * function counts the lines and sees the headings first.
 */
#include "ini/ini.h"

#include <ini.h>
#include <stdbool.h>
#include <string.h>

#include "ini/words.h"

struct reader {
	const char *next; /* the text not yet read */
	struct gp_place at;
	const struct gp_ini_ops *ops;
	void *arg;
	bool in_section;
	int error;
};

static int read_heading(struct reader *rd, char *line)
{
	char *end = strchr(line, ']');
	const char *rest;

	if (!end)
		return gp_complain(&rd->at, "the section has no end; write it as: [%.*s]",
				   (int)strcspn(line + 1, "\r\n"), line + 1);
	rest = end + 1 + strspn(end + 1, " \t\r\n");
	if (*rest && *rest != ';' && *rest != '#')
		return gp_complain(&rd->at, "put what follows the section on a line of its own");
	*end = '\0';
	rd->in_section = true;
	return rd->ops->section(rd->arg, &rd->at, line + 1);
}

/*
 * fgets for inih.  Leading blanks go, because inih would take an indented line for
 * more of the last value.  Headings and comments are dealt with here, and inih sees
 * an empty line.
 */
static char *read_line(char *line, int size, void *stream)
{
	struct reader *rd = stream;
	size_t len, skip;

	if (rd->error || !*rd->next)
		return NULL;
	rd->at.line++;
	len = strcspn(rd->next, "\n");
	skip = strspn(rd->next, " \t\r\f\v");
	if (skip > len)
		skip = len;
	line[0] = '\0';
	if (rd->next[skip] != '#' && rd->next[skip] != ';') {
		if (len - skip >= (size_t)size - 1) {
			rd->error = gp_complain(&rd->at, "the line is too long; keep it under %d characters",
						size - 1);
			return NULL;
		}
		memcpy(line, rd->next + skip, len - skip);
		line[len - skip] = '\0';
	}
	rd->next += len + (rd->next[len] == '\n');
	if (line[0] == '[') {
		rd->error = read_heading(rd, line);
		line[0] = '\0';
	}
	return line;
}

static int take_entry(void *user, const char *section, const char *name, const char *value)
{
	struct reader *rd = user;

	(void)section; /* cut at 50 characters; ours is not */
	if (rd->error)
		return 0;
	if (!rd->in_section)
		rd->error = gp_complain(
			&rd->at, "%s stands before any section; a line with one, as [NAME], comes first",
			name);
	else
		rd->error = rd->ops->entry(rd->arg, &rd->at, name, value);
	return rd->error == 0;
}

int gp_ini_parse(const char *text, const char *file, const struct gp_ini_ops *ops, void *arg,
		 struct gp_diag *diag)
{
	struct reader rd = {
		.next = gp_text_begin(text), .at = { .file = file, .diag = diag }, .ops = ops, .arg = arg
	};
	unsigned int last;
	int r;

	r = ini_parse_stream(read_line, &rd, take_entry, &rd);
	last = rd.at.line;
	/* inih goes on after a line it cannot read, so a later error may have come in between. */
	if (r > 0 && (!rd.error || (unsigned int)r < last)) {
		diag->text[0] = '\0';
		rd.at.line = (unsigned int)r;
		return gp_complain(&rd.at, "neither a section nor a setting; write it as: key = value");
	}
	if (r < 0)
		return gp_complain(&rd.at, "cannot be read; out of memory");
	return rd.error;
}
