/* SPDX-License-Identifier: MIT */
/* One line that says where input is wrong, what is wrong, and what to write instead. */
#ifndef GP_INI_DIAG_H
#define GP_INI_DIAG_H

struct gp_diag {
	char text[256];
};

/* Where a parser is. Line 0: the input has no lines, as an option on the command line. */
struct gp_place {
	const char *file; /* or the option, as "--lease"; NULL: the message says where */
	unsigned int line;
	int is_option;
	struct gp_diag *diag;
};

/* Fills the diag as FILE:LINE: message, always -EINVAL. What is there already stays: the first error wins.
 * What it quotes of the input is made harmless. */
int gp_complain(const struct gp_place *at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
