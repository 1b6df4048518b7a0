// SPDX-License-Identifier: MIT
#include "cli/top_act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client_text.h"
#include "cli/queue_text.h"
#include "study/sources.h"

__attribute__((format(printf, 3, 4))) static int say(char text[GP_TOP_SENTENCE], int r, const char *format,
						     ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, GP_TOP_SENTENCE, format, args);
	va_end(args);
	return r;
}

/* In gpreemptd's words, and how to get the right if that is what is missing. */
static int refused(struct gp_ctx *ctx, int r, char text[GP_TOP_SENTENCE])
{
	char why[GP_WHY], how[256];

	snprintf(why, sizeof(why), "%s", gp_ctx_errmsg(ctx)[0] ? gp_ctx_errmsg(ctx) : gp_strerror(r));
	if (r != -EPERM)
		return say(text, r, "%s", why);
	return say(text, r, "%s: %s", why, gp_rights_advice(ctx, how, sizeof(how)));
}

const char *gp_top_who(const struct gp_client_info *c, char text[GP_TOP_WHO])
{
	snprintf(text, GP_TOP_WHO, "%s %" PRIu64, c->name, gp_client_number(c));
	return text;
}

static int is_of(const struct gp_queue_info *q, const struct gp_client_info *c)
{
	return q->client == c->client && q->device == c->device;
}

size_t gp_top_queues_of(const struct gp_top *t, const struct gp_client_info *c)
{
	size_t n = 0;

	for (size_t i = 0; i < t->list.nqueues; i++)
		n += is_of(&t->list.queues[i], c) != 0;
	return n;
}

/* A simulated machine is whoever's has it. */
int gp_top_may(struct gp_ctx *ctx, const struct gp_client_info *c, char text[GP_TOP_SENTENCE])
{
	uint32_t rights;
	char how[256];

	if (gp_ctx_rights(ctx, &rights) < 0 || rights & GP_RIGHT_OTHERS || (c && c->uid == geteuid()))
		return 0;
	return say(text, -EPERM, "read-only: only root and group gpreempt may change %s: %s",
		   c ? "other users' clients" : "policies", gp_rights_advice(ctx, how, sizeof(how)));
}

/* For the caller to free. */
static uint64_t *handles_of(const struct gp_top *t, const struct gp_client_info *c, size_t *ret)
{
	uint64_t *handles = calloc(t->list.nqueues + 1, sizeof(*handles));

	*ret = 0;
	for (size_t i = 0; handles && i < t->list.nqueues; i++)
		if (is_of(&t->list.queues[i], c))
			handles[(*ret)++] = t->list.queues[i].queue;
	return handles;
}

/* opts NULL: resume. */
static int act(const struct gp_top *t, struct gp_ctx *ctx, const struct gp_client_info *c,
	       const struct gp_suspend_opts *opts, char text[GP_TOP_SENTENCE])
{
	size_t n;
	uint64_t *handles = handles_of(t, c, &n);
	char who[GP_TOP_WHO];
	int r = say(text, -ENOMEM, "out of memory");

	if (handles && !n)
		r = say(text, -ENOENT, "%s has no queues there", gp_top_who(c, who));
	else if (handles)
		r = opts ? gp_queue_suspend(ctx, handles, n, opts, NULL)
			 : gp_queue_resume(ctx, handles, n, NULL);
	free(handles);
	if (!n)
		return r;
	if (r < 0)
		return refused(ctx, r, text);
	return say(text, 0, "%s %zu queue%s of %s%s%s", opts ? "Suspended" : "Resumed", n, n == 1 ? "" : "s",
		   gp_top_who(c, who), gp_ctx_notice(ctx)[0] ? ": " : "", gp_ctx_notice(ctx));
}

int gp_top_suspend(const struct gp_top *t, struct gp_ctx *ctx, const struct gp_client_info *c,
		   char text[GP_TOP_SENTENCE])
{
	const struct gp_suspend_opts opts = { .size = sizeof(opts), .flags = GP_SUSPEND_NEW_QUEUES };

	return act(t, ctx, c, &opts, text);
}

int gp_top_resume(const struct gp_top *t, struct gp_ctx *ctx, const struct gp_client_info *c,
		  char text[GP_TOP_SENTENCE])
{
	return act(t, ctx, c, NULL, text);
}

int gp_top_set_class(struct gp_ctx *ctx, const struct gp_client_info *c, uint32_t client_class,
		     char text[GP_TOP_SENTENCE])
{
	int r = gp_client_set_class(ctx, c->client, client_class);
	char who[GP_TOP_WHO];

	if (r < 0)
		return refused(ctx, r, text);
	return say(text, 0, "%s is %s from now on", gp_top_who(c, who), gp_class_text(client_class));
}

/* Who refuses a name names those that there are, loaded ones too. The empty one is nobody's. */
void gp_top_policies(struct gp_ctx *ctx, uint32_t device, char names[GP_TOP_SENTENCE])
{
	static const char before[] = "; there are: ";
	const char *told = NULL;

	if (gp_device_set_policy(ctx, device, "") == -ENOENT)
		told = strstr(gp_ctx_errmsg(ctx), before);
	if (told)
		snprintf(names, GP_TOP_SENTENCE, "%s", told + strlen(before));
	else
		gp_source_names("policy", names, GP_TOP_SENTENCE);
}

int gp_top_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name, char text[GP_TOP_SENTENCE])
{
	int r = gp_device_set_policy(ctx, device, name);

	return r < 0 ? refused(ctx, r, text)
		     : say(text, 0, "%s schedules device %" PRIu32 " from now on", name, device);
}
