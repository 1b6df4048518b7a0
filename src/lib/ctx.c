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

const char *gp_ctx_notice(const struct gp_ctx *ctx)
{
	return ctx ? ctx->notice : "";
}

static int open_with(struct gp_ctx *ctx, const struct gp_lib_ops *ops, const struct gp_open_opts *opts)
{
	ctx->ops = ops;
	return ops->open(ctx, opts);
}

/* A device's name is a simulated one's: whoever gives it wants the simulated machine. */
static int open_auto(struct gp_ctx *ctx, const struct gp_open_opts *opts)
{
	int r = opts->device ? -ENODEV : open_with(ctx, &gp_lib_kfd, opts);

	return r == -ENODEV ? open_with(ctx, &gp_lib_sim, opts) : r;
}

static int open_named(struct gp_ctx *ctx, const char *name, const struct gp_open_opts *opts)
{
	if (!strcmp(name, "auto"))
		return open_auto(ctx, opts);
	if (!strcmp(name, gp_lib_kfd.name))
		return open_with(ctx, &gp_lib_kfd, opts);
	return strcmp(name, gp_lib_sim.name) ? -ENOENT : open_with(ctx, &gp_lib_sim, opts);
}

static const char *backend_name(const struct gp_open_opts *opts)
{
	const char *name = opts->backend;

	if (!name || !strcmp(name, "auto"))
		name = secure_getenv("GPREEMPT_BACKEND");
	return name && *name ? name : "auto";
}

int gp_ctx_open(const struct gp_open_opts *opts, struct gp_ctx **ret_ctx)
{
	struct gp_open_opts o = { .size = sizeof(o) };
	struct gp_ctx *ctx;
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;

	if (r < 0)
		return r;
	if (o.flags || !ret_ctx)
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	r = open_named(ctx, backend_name(&o), &o);
	if (r < 0) {
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
