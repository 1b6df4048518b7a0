// SPDX-License-Identifier: MIT
/* The files in which container runtimes keep what they know: JSON, of which this reads strings and depth. */
#include <string.h>

#include "discover/scan.h"

/* A string of a JSON text: its depth, and whether it is a key. Escapes stay as they are. */
struct token {
	struct gp_span text;
	int depth;
	int is_key;
};

struct json {
	const char *at, *end;
	int depth;
	int closed; /* an object of the outermost array has ended since the last token */
};

/* Behind the closing quote of the string at at, or NULL. */
static const char *string_end(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '"')
			return at + 1;
	}
	return NULL;
}

static int next_string(struct json *j, struct token *ret)
{
	const char *end;

	j->closed = 0;
	for (; j->at < j->end; j->at++) {
		if (*j->at == '{' || *j->at == '[')
			j->depth++;
		if (*j->at == '}' || *j->at == ']')
			j->depth--;
		if (*j->at == '}' && j->depth == 1)
			j->closed = 1;
		if (*j->at != '"')
			continue;
		end = string_end(j->at, j->end);
		if (!end)
			return 0;
		ret->text = (struct gp_span){ j->at + 1, end - 1 };
		ret->depth = j->depth;
		while (end < j->end && (*end == ' ' || *end == '\n' || *end == '\t' || *end == '\r'))
			end++;
		ret->is_key = end < j->end && *end == ':';
		j->at = end;
		return 1;
	}
	return 0;
}

static int is(const struct gp_span *s, const char *word)
{
	return gp_span_len(s) == strlen(word) && !memcmp(s->at, word, gp_span_len(s));
}

int gp_json_find(const char *text, size_t len, const char *section, const char *key, struct gp_span *ret)
{
	struct json j = { .at = text, .end = text + len };
	int depth = section ? 2 : 1, in_section = !section, is_next = 0;
	struct token t;

	while (next_string(&j, &t)) {
		if (is_next && !t.is_key) {
			*ret = t.text;
			return 1;
		}
		if (section && t.is_key && t.depth == 1)
			in_section = is(&t.text, section);
		is_next = in_section && t.is_key && t.depth == depth && is(&t.text, key);
	}
	return 0;
}

int gp_docker_name(const char *text, size_t len, struct gp_span *ret_name)
{
	if (!gp_json_find(text, len, NULL, "Name", ret_name))
		return 0;
	(void)gp_span_take(ret_name, "/");
	return 1;
}

/* An array of objects with "id": "...", "names": ["...", ...]. */
int gp_podman_find(const char *text, size_t len, const char *id, const char *name, struct gp_span *ret)
{
	struct json j = { .at = text, .end = text + len };
	struct gp_span this_id = { 0 }, this_name = { 0 };
	enum { OTHER, ID, NAMES } key = OTHER;
	struct token t;

	while (next_string(&j, &t)) {
		if (j.closed)
			this_id = this_name = (struct gp_span){ 0 };
		if (t.is_key) {
			key = t.depth != 2           ? OTHER
			      : is(&t.text, "id")    ? ID
			      : is(&t.text, "names") ? NAMES
						     : OTHER;
			continue;
		}
		if (key == ID && t.depth == 2)
			this_id = t.text;
		if (key == NAMES && t.depth == 3 && (!this_name.at || (name && is(&t.text, name))))
			this_name = t.text;
		if (!this_id.at || !this_name.at || !is(id ? &this_id : &this_name, id ? id : name))
			continue;
		*ret = id ? this_name : this_id;
		return 1;
	}
	return 0;
}
