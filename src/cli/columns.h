/* SPDX-License-Identifier: MIT */
/* Rows of words under headings, each column as wide as its longest word. */
#ifndef GP_CLI_COLUMNS_H
#define GP_CLI_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

#define GP_MOST_COLUMNS 13

struct gp_columns {
	size_t n;     /* columns */
	char **cells; /* rows of n */
	size_t ncells;
	size_t room;
	size_t cut; /* the column whose words may be cut, and how many must stay beside each other; 0: none */
	size_t keep;
	size_t widths[GP_MOST_COLUMNS], gap, screen; /* once it is known how much room there is */
	int failed;                                  /* out of memory: printing says so */
};

/* headings: n words. */
void gp_columns_begin(struct gp_columns *c, const char *const *headings, size_t n);
/* One row of n words, copied. An empty one is shown as "-". */
void gp_columns_add(struct gp_columns *c, const char *const *words);
/*
 * On a terminal that has no room for all, the words of one column are cut so that at least the first keep
 * columns stand in one line. A word keeps a few characters: where that is not enough, none is cut.
 */
void gp_columns_cut(struct gp_columns *c, size_t column, size_t keep);
/* Whether all columns that must stay beside each other have room there, if the one is cut as far as it may.
 */
int gp_columns_have_room(const struct gp_columns *c, size_t screen);
/* The column of that heading is not shown. */
void gp_columns_leave_out(struct gp_columns *c, const char *heading);
/* Columns that the terminal has no room for stand below the others, if out is one; a column in which nobody
 * has a word is left out. Frees. */
void gp_columns_print(struct gp_columns *c, FILE *out);
/*
 * For who draws lines: the rows for a screen of that many columns, each of them one line. What has no room
 * there is left out. Row 0 is the headings. Returns text.
 */
void gp_columns_fit(struct gp_columns *c, size_t screen);
const char *gp_columns_line(const struct gp_columns *c, size_t row, char *text, size_t size);
void gp_columns_free(struct gp_columns *c); /* what is not printed after all */

#endif
