/* SPDX-License-Identifier: MIT */
/* What is attached, as gpreemptd keeps it in a file beside its socket: gpreempt-attach(1), FILES. */
#ifndef GP_CLI_ATTACHED_H
#define GP_CLI_ATTACHED_H

#include "cli/options.h"

/* Of the gpreemptd that runs. Returns the exit code. */
int gp_attached_print(const struct gp_options *o);

#endif
