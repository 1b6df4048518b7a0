// SPDX-License-Identifier: MIT
#include "lib/ctx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "base/text.h"

uint32_t gp_version(void)
{
	return GP_MAKE_VERSION(GP_VERSION_MAJOR, GP_VERSION_MINOR);
}

const char *gp_strerror(int r)
{
	return r >= 0 ? "no error" : strerror(-r);
}

int gp_ctx_fail(struct gp_ctx *ctx, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(ctx->error, sizeof(ctx->error), format, args);
	va_end(args);
	gp_text_clean(ctx->error);
	return r;
}

void gp_ctx_note(struct gp_ctx *ctx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(ctx->notice, sizeof(ctx->notice), format, args);
	va_end(args);
	gp_text_clean(ctx->notice);
}

const char *gp_ctx_errmsg(const struct gp_ctx *ctx)
{
	return ctx ? ctx->error : "";
}

/* What was said of the last call goes first. */
const char *gp_ctx_notice(const struct gp_ctx *ctx)
{
	if (!ctx)
		return "";
	if (!ctx->notice[0])
		ctx->ops->look((struct gp_ctx *)ctx);
	return ctx->notice;
}

int gp_ctx_rights(struct gp_ctx *ctx, uint32_t *ret_rights)
{
	return ctx && ret_rights ? ctx->ops->rights(ctx, ret_rights) : -EINVAL;
}

static int open_with(struct gp_ctx *ctx, const struct gp_lib_ops *ops, const struct gp_open_opts *opts)
{
	ctx->ops = ops;
	return ops->open(ctx, opts);
}

static int open_named(struct gp_ctx *ctx, const char *name, const struct gp_open_opts *opts)
{
	if (!strcmp(name, gp_lib_kfd.name))
		return open_with(ctx, &gp_lib_kfd, opts);
	if (!strcmp(name, gp_lib_sim.name))
		return open_with(ctx, &gp_lib_sim, opts);
	return gp_ctx_fail(ctx, -ENOENT, "there is no backend \"%s\"; there are auto, kfd and sim", name);
}

static const char *backend_name(const struct gp_open_opts *opts)
{
	const char *name = opts->backend;

	if (!name || !strcmp(name, "auto"))
		name = secure_getenv("GPREEMPT_BACKEND");
	if (name && *name && strcmp(name, "auto") != 0)
		return name;
	/* A device's name is a simulated one's: whoever gives it wants the simulated machine. */
	return opts->device ? gp_lib_sim.name : gp_lib_kfd.name;
}

static int fail_open(const struct gp_open_opts *opts, int r, const char *why)
{
	if (opts->errmsg && opts->errmsg_size)
		(void)snprintf(opts->errmsg, opts->errmsg_size, "%s", *why ? why : gp_strerror(r));
	return r;
}

int gp_ctx_open(const struct gp_open_opts *opts, struct gp_ctx **ret_ctx)
{
	struct gp_open_opts o = { .size = sizeof(o) };
	struct gp_ctx *ctx;
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (r < 0)
		return r;
	if (o.flags || !ret_ctx)
		return fail_open(&o, -EINVAL, "a flag is set, or there is nowhere to put the context");
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return fail_open(&o, -ENOMEM, "");
	r = open_named(ctx, backend_name(&o), &o);
	if (r < 0) {
		(void)fail_open(&o, r, ctx->error);
		free(ctx);
		return r;
	}
	*ret_ctx = ctx;
	return 0;
}

struct gp_ctx *gp_ctx_close(struct gp_ctx *ctx)
{
	if (ctx)
		ctx->ops->close(ctx);
	free(ctx);
	return NULL;
}
