/* SPDX-License-Identifier: MIT */
#ifndef GP_LIB_CTX_H
#define GP_LIB_CTX_H

#include <gpreempt/gpreempt.h>

#include "machine/machine.h"

/*
 * Today a context owns a simulated machine.  Its time follows the real clock, but
 * only while somebody calls: each call first lets it catch up, by a second at most.
 */
struct gp_ctx {
	struct gp_machine *machine;
	uint64_t real_ns; /* when it last caught up */
	char error[192];
};

/* Keeps the sentence for gp_ctx_errmsg() and returns r. */
__attribute__((format(printf, 3, 4))) int gp_ctx_fail(struct gp_ctx *ctx, int r, const char *format, ...);
void gp_ctx_catch_up(struct gp_ctx *ctx);

#endif
