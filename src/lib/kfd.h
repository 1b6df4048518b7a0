/* SPDX-License-Identifier: MIT */
#ifndef GP_LIB_KFD_H
#define GP_LIB_KFD_H

#include "lib/ctx.h"

/* How long gpreemptd may take for an answer, beside what a stop takes: for tests of one that hangs. */
void gp_kfd_set_patience(struct gp_ctx *ctx, uint64_t answer_ns, uint64_t stop_ns);

#endif
