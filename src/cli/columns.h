/* SPDX-License-Identifier: MIT */
/* Rows of words under headings, each column as wide as its longest word. */
#ifndef GP_CLI_COLUMNS_H
#define GP_CLI_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

#define GP_MOST_COLUMNS 12

struct gp_columns {
	size_t n;     /* columns */
	char **cells; /* rows of n */
	size_t ncells;
	size_t room;
	int failed; /* out of memory: printing says so */
};

/* headings: n words. */
void gp_columns_begin(struct gp_columns *c, const char *const *headings, size_t n);
/* One row of n words, copied. An empty one is shown as "-". */
void gp_columns_add(struct gp_columns *c, const char *const *words);
/* Columns that the terminal has no room for stand below the others, if out is one; a column in which nobody
 * has a word is left out. Frees. */
void gp_columns_print(struct gp_columns *c, FILE *out);
void gp_columns_free(struct gp_columns *c); /* what is not printed after all */

#endif
