/* SPDX-License-Identifier: MIT */
/* What the keys of gpreempt top do to others.  Each leaves a sentence: what was done, or why it was not. */
#ifndef GP_CLI_TOP_ACT_H
#define GP_CLI_TOP_ACT_H

#include "cli/top_view.h"

#define GP_TOP_SENTENCE 512

/* "train 4711" */
#define GP_TOP_WHO 64
const char *gp_top_who(const struct gp_client_info *c, char text[GP_TOP_WHO]);
/* How many queues it has there. */
size_t gp_top_queues_of(const struct gp_top *t, const struct gp_client_info *c);

/* Whether gpreemptd would refuse for want of rights: 0, or -EPERM and how to get them. c NULL: devices. */
int gp_top_may(struct gp_ctx *ctx, const struct gp_client_info *c, char text[GP_TOP_SENTENCE]);

/* All of them: 0 or -errno. A suspension ends with the context. */
int gp_top_suspend(const struct gp_top *t, struct gp_ctx *ctx, const struct gp_client_info *c,
		   char text[GP_TOP_SENTENCE]);
int gp_top_resume(const struct gp_top *t, struct gp_ctx *ctx, const struct gp_client_info *c,
		  char text[GP_TOP_SENTENCE]);
int gp_top_set_class(struct gp_ctx *ctx, const struct gp_client_info *c, uint32_t client_class,
		     char text[GP_TOP_SENTENCE]);
/* Those that there are, with a space between; built in ones, if nobody tells. */
void gp_top_policies(struct gp_ctx *ctx, uint32_t device, char names[GP_TOP_SENTENCE]);
int gp_top_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name, char text[GP_TOP_SENTENCE]);

#endif
