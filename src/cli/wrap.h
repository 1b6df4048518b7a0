/* SPDX-License-Identifier: MIT */
/* Text as wide as the terminal, and as a shell takes it. */
#ifndef GP_CLI_WRAP_H
#define GP_CLI_WRAP_H

#include <stdio.h>

#define GP_TEXT_AT 21 /* where the texts of options begin */
#define GP_LINE 100   /* of text, where there is no terminal to say */

/* Columns of the terminal that out is; otherwise if it is none. */
int gp_screen_width(FILE *out, int otherwise);
/* Words, with lines broken where the terminal ends or at 120; the first begins at column indent, and so do
 * the next. */
void gp_print_wrapped(const char *text, int indent, FILE *out);
/* How something is used: what a terminal has no room for is broken anew, but for the examples at the end. */
void gp_print_usage(const char *usage, FILE *out);
/* Something, and after it an argument as a shell takes it: as it is if nothing in it is special. */
void gp_print_argument(FILE *out, const char *before, const char *text);

#endif
