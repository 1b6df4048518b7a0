// SPDX-License-Identifier: MIT
#include "cli/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/wrap.h"

#define GAP 2
#define LONGEST 4096

static void add_cell(struct gp_columns *c, const char *word)
{
	char **more;

	if (c->ncells == c->room) {
		c->room = c->room ? 2 * c->room : 64;
		more = realloc(c->cells, c->room * sizeof(*more));
		if (!more) {
			c->failed = 1;
			c->room = c->ncells;
			return;
		}
		c->cells = more;
	}
	c->cells[c->ncells] = strdup(word);
	if (!c->cells[c->ncells]) {
		c->failed = 1;
		return;
	}
	gp_text_clean(c->cells[c->ncells++]);
}

void gp_columns_add(struct gp_columns *c, const char *const *words)
{
	for (size_t i = 0; i < c->n && !c->failed; i++)
		add_cell(c, words[i]);
}

void gp_columns_begin(struct gp_columns *c, const char *const *headings, size_t n)
{
	*c = (struct gp_columns){ .n = n < GP_MOST_COLUMNS ? n : GP_MOST_COLUMNS };
	gp_columns_add(c, headings);
}

/* With the gap behind it; 0: nobody has a word there. */
static size_t width_of(const struct gp_columns *c, size_t column)
{
	size_t width = strlen(c->cells[column]), longest = 0;

	for (size_t i = column + c->n; i < c->ncells; i += c->n)
		if (strlen(c->cells[i]) > longest)
			longest = strlen(c->cells[i]);
	return !longest ? 0 : (longest > width ? longest : width) + GAP;
}

static size_t put_cell(char line[LONGEST], size_t used, const char *cell, size_t width)
{
	int n = snprintf(line + used, LONGEST - used, "%-*s", (int)width, cell[0] ? cell : "-");

	return used + (size_t)n < LONGEST ? used + (size_t)n : LONGEST - 1;
}

/* The last column stands below the others if there is no room for it beside them. */
static void print_row(char *const *cells, const size_t *widths, size_t n, size_t screen, FILE *out)
{
	char line[LONGEST];
	size_t used = 0, fitting = n;

	for (size_t i = 0; i < n; i++)
		used += widths[i];
	if (used > screen + GAP)
		fitting--;
	used = 0;
	for (size_t i = 0; i < fitting; i++)
		if (widths[i])
			used = put_cell(line, used, cells[i], widths[i]);
	if (used > screen)
		used = screen;
	while (used && line[used - 1] == ' ')
		used--;
	line[used] = '\0';
	gp_text_clean(line);
	fprintf(out, "%s\n", line);
	if (fitting < n && widths[n - 1])
		fprintf(out, "%*s%s\n", (int)widths[0], "", cells[n - 1][0] ? cells[n - 1] : "-");
}

void gp_columns_free(struct gp_columns *c)
{
	for (size_t i = 0; i < c->ncells; i++)
		free(c->cells[i]);
	free(c->cells);
	*c = (struct gp_columns){ 0 };
}

void gp_columns_print(struct gp_columns *c, FILE *out)
{
	size_t widths[GP_MOST_COLUMNS], screen = (size_t)gp_screen_width(out, LONGEST);

	if (c->failed) {
		fputs("(out of memory)\n", out);
	} else {
		for (size_t i = 0; i < c->n; i++)
			widths[i] = width_of(c, i);
		for (size_t i = 0; i < c->ncells; i += c->n)
			print_row(c->cells + i, widths, c->n, screen, out);
	}
	gp_columns_free(c);
}
