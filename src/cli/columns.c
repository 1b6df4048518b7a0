// SPDX-License-Identifier: MIT
#include "cli/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/wrap.h"

#define GAP 2
#define LONGEST 4096
#define ELLIPSIS "..."
#define LEAST_WORD 8 /* of a cut one, with the ellipsis */

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

/* 0: nobody has a word there. */
static size_t width_of(const struct gp_columns *c, size_t column)
{
	size_t width = gp_text_width(c->cells[column]), longest = 0;

	for (size_t i = column + c->n; i < c->ncells; i += c->n)
		if (gp_text_width(c->cells[i]) > longest)
			longest = gp_text_width(c->cells[i]);
	return !longest ? 0 : longest > width ? longest : width;
}

void gp_columns_cut(struct gp_columns *c, size_t column, size_t keep)
{
	c->cut = column;
	c->keep = keep;
}

/* Of the first n columns beside each other. */
static size_t row_width(const size_t *widths, size_t n, size_t gap)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		used += widths[i] ? widths[i] + gap : 0;
	return used > gap ? used - gap : 0;
}

int gp_columns_have_room(const struct gp_columns *c, size_t screen)
{
	size_t widths[GP_MOST_COLUMNS];

	for (size_t i = 0; i < c->keep && !c->failed; i++) {
		widths[i] = width_of(c, i);
		if (i == c->cut && widths[i] > LEAST_WORD)
			widths[i] = LEAST_WORD;
	}
	return c->failed || row_width(widths, c->keep, 1) <= screen;
}

void gp_columns_leave_out(struct gp_columns *c, const char *heading)
{
	for (size_t column = 0; column < c->n && !c->failed; column++)
		for (size_t i = column + c->n; !strcmp(c->cells[column], heading) && i < c->ncells; i += c->n)
			c->cells[i][0] = '\0';
}

/* Words that are longer than that get an ellipsis. */
static void cut_words(struct gp_columns *c, size_t width)
{
	for (size_t i = c->n + c->cut; i < c->ncells; i += c->n) {
		char *word = c->cells[i];
		size_t kept = gp_text_fit(word, width - strlen(ELLIPSIS));

		/* What has no room has more bytes than the ellipsis. */
		if (gp_text_width(word) > width)
			strcpy(word + kept, ELLIPSIS);
	}
}

/* Tries all columns in one line first, then fewer, down to those that are kept there, and cuts the one column
 * by what is missing. */
static void make_room(struct gp_columns *c)
{
	for (size_t n = c->n; c->keep && n >= c->keep; n--) {
		size_t need = row_width(c->widths, n, 1), *width = &c->widths[c->cut];

		if (need > c->screen && *width < need - c->screen + LEAST_WORD)
			continue;
		if (need > c->screen) {
			*width -= need - c->screen;
			cut_words(c, *width);
		}
		return;
	}
}

/* Between two columns: less, if all of them, or those that are kept, fit beside each other then. */
static size_t gap_of(const struct gp_columns *c)
{
	for (size_t n = c->n; n >= (c->keep ? c->keep : c->n); n--)
		for (size_t gap = GAP; gap; gap--)
			if (row_width(c->widths, n, gap) <= c->screen)
				return gap;
	return GAP;
}

void gp_columns_fit(struct gp_columns *c, size_t screen)
{
	c->screen = screen;
	for (size_t i = 0; i < c->n && !c->failed; i++)
		c->widths[i] = width_of(c, i);
	make_room(c);
	c->gap = gap_of(c);
}

/* What has no room beside the others stands below them, and so do the headings; or it is left out. */
static void print_row(const struct gp_columns *c, size_t row, int below, FILE *out)
{
	size_t indent = c->widths[0] + c->gap, used = 0, spaces = 0;

	for (size_t i = 0; i < c->n; i++) {
		const char *cell = c->cells[row * c->n + i];

		cell = cell[0] ? cell : "-";
		if (!c->widths[i])
			continue;
		if (used + spaces + c->widths[i] > c->screen && !below)
			return;
		if (used > indent && used + spaces + c->widths[i] > c->screen) {
			fputc('\n', out);
			used = 0;
			spaces = indent;
		}
		fprintf(out, "%*s%s", (int)spaces, "", cell);
		used += spaces + gp_text_width(cell);
		spaces = c->widths[i] - gp_text_width(cell) + c->gap;
	}
}

const char *gp_columns_line(const struct gp_columns *c, size_t row, char *text, size_t size)
{
	FILE *out = fmemopen(text, size, "w");

	text[0] = '\0';
	if (out && !c->failed)
		print_row(c, row, 0, out);
	if (out)
		fclose(out);
	text[size - 1] = '\0';
	return text;
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
	if (c->failed) {
		fputs("(out of memory)\n", out);
	} else {
		gp_columns_fit(c, (size_t)gp_screen_width(out, LONGEST));
		for (size_t row = 0; row < c->ncells / c->n; row++) {
			print_row(c, row, 1, out);
			fputc('\n', out);
		}
	}
	gp_columns_free(c);
}
