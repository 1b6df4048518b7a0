/* SPDX-License-Identifier: MIT */
/* gpreemptd.conf(5): its settings, which are those of the command line too. */
#ifndef GP_DAEMON_CONF_FILE_H
#define GP_DAEMON_CONF_FILE_H

#include "daemon/conf.h"
#include "ini/diag.h"

#define GP_CONF_CLASSES "/etc/gpreempt/classes.ini"

/* Every setting as it is when nobody says otherwise. */
void gp_conf_preset(struct gp_conf *conf);
/* One setting of a section, as an option on the command line. Fills diag if it cannot. */
int gp_conf_set(struct gp_conf *conf, const char *section, const char *name, const char *value,
		const char *option, struct gp_diag *diag);
/* A line in the log for each thing that is wrong. -EINVAL; -ENOENT and others: it cannot be read. */
int gp_conf_read(struct gp_conf *conf, const char *path);
/* On stdout, as a file that says the same. */
void gp_conf_print(const struct gp_conf *conf);

#endif
