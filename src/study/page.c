// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "study/output.h"

#define MARKER "@RESULT@"
#define ESCAPED "\\u003c"

/* '<' could end the script element that holds the JSON. */
static char *put_escaped(char *to, const char *json)
{
	for (; *json; json++) {
		if (*json == '<') {
			memcpy(to, ESCAPED, strlen(ESCAPED));
			to += strlen(ESCAPED);
		} else {
			*to++ = *json;
		}
	}
	return to;
}

static size_t escaped_len(const char *json)
{
	size_t len = 0;

	for (; *json; json++)
		len += *json == '<' ? strlen(ESCAPED) : 1;
	return len;
}

int gp_page_make(const char *json, char **ret_html)
{
	const struct gp_embed *page = gp_embed_find("page", "report");
	const char *marker = page ? strstr(page->text, MARKER) : NULL;
	char *html, *end;

	if (!marker)
		return -ENOENT;
	html = malloc(page->len + escaped_len(json) + 1);
	if (!html)
		return -ENOMEM;
	memcpy(html, page->text, (size_t)(marker - page->text));
	end = put_escaped(html + (marker - page->text), json);
	strcpy(end, marker + strlen(MARKER));
	*ret_html = html;
	return 0;
}
