// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "study/output.h"

#define RESULT "@RESULT@"
#define ALSO "@ALSO@"

/* '<' could end the script element that holds the JSON. */
static void put_escaped(FILE *out, const char *json)
{
	for (; *json; json++)
		if (*json == '<')
			fputs("\\u003c", out);
		else
			fputc(*json, out);
}

/* The template up to a marker, which must be there. Returns what follows it. */
static const char *put_until(FILE *out, const char *text, const char *marker)
{
	const char *at = strstr(text, marker);

	fwrite(text, 1, (size_t)(at - text), out);
	return at + strlen(marker);
}

int gp_page_make(const char *json, const char *also, char **ret_html)
{
	const struct gp_embed *page = gp_embed_find("page", "report");
	const char *rest;
	char *html = NULL;
	size_t len;
	FILE *out = page ? open_memstream(&html, &len) : NULL;

	if (!out)
		return page ? -ENOMEM : -ENOENT;
	rest = put_until(out, page->text, ALSO);
	fputs(also, out);
	rest = put_until(out, rest, RESULT);
	put_escaped(out, json);
	fputs(rest, out);
	if (fclose(out) != 0) {
		free(html);
		return -ENOMEM;
	}
	*ret_html = html;
	return 0;
}
