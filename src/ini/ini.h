/* SPDX-License-Identifier: MIT */
/* Ini files by inih, with the line of everything and with empty sections. */
#ifndef GP_INI_INI_H
#define GP_INI_INI_H

#include "ini/diag.h"

/* Both return 0, or a negative errno after filling at->diag. */
struct gp_ini_ops {
	int (*section)(void *arg, const struct gp_place *at, const char *heading);
	int (*entry)(void *arg, const struct gp_place *at, const char *key, const char *value);
};

/* Stops at the first error. An entry before any section is an error. */
int gp_ini_parse(const char *text, const char *file, const struct gp_ini_ops *ops, void *arg,
		 struct gp_diag *diag);

#endif
