// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/attached.h"
#include "cli/bring.h"
#include "cli/machine_list.h"
#include "cli/preload.h"
#include "discover/describe.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt attach CONTAINER --online|--offline [options]\n"
	"       gpreempt attach --pid PID --online|--offline [options]\n"
	"       gpreempt attach --list [options]\n"
	"\n"
	"Gives a container that runs already a class, and brings the agent into it. Prints the line that\n"
	"starts a program in it under gpreempt. What runs in it already is not changed. For root.\n"
	"\n"
	"  --online           all that comes from it is online,\n"
	"  --offline          or offline, whatever it says of itself; again, to change it\n"
	"  --pid PID          a process of the container, by the host's number; it lasts as long as that one\n"
	"  --list             what is attached\n"
	"  --socket PATH      gpreemptd's\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt attach trainer --offline\n"
	"  gpreempt attach --pid 4711 --online\n"
	"  gpreempt attach --list\n";

/* What is attached, and what is known of it. */
struct target {
	const char *word; /* what it was called; NULL: by its pid */
	const char *name; /* of its class */
	uint32_t pid, client_class;
	uint64_t start;
	struct gp_found_client found;
};

/* -1 to go on, else the exit code. So with the others. */
static int check(const struct gp_options *o)
{
	if (o->list && (o->online || o->offline || o->pid))
		return gp_fail(GP_EXIT_BAD_INPUT, "attach: --list takes no class and no process");
	if (!o->list && o->online == o->offline)
		return gp_fail(GP_EXIT_BAD_INPUT, "attach: say --online or --offline, one of them");
	if (!o->list && o->argc == (o->pid != 0))
		return gp_fail(GP_EXIT_BAD_INPUT, "attach: name a container, or a process of it by --pid");
	if (geteuid() != 0)
		return gp_fail(GP_EXIT_FAILED, "attach: only root may do this: use sudo");
	return -1;
}

static int find_container(const char *word, uint32_t *ret)
{
	int r = gp_discover_container_pid(NULL, word, 1, ret);

	if (r == 0)
		return -1;
	if (r == -ENOTUNIQ)
		return gp_fail(
			GP_EXIT_FAILED,
			"attach: \"%s\" is more than one container, or has others in it: write its whole "
			"id, or name one of its processes by --pid",
			word);
	return gp_fail(GP_EXIT_FAILED,
		       "attach: no container that runs is called \"%s\"; --pid takes one of its processes",
		       word);
}

static int find(const struct gp_options *o, struct target *ret)
{
	int code = -1;

	*ret = (struct target){ .word = o->argc ? o->argv[0] : NULL,
				.pid = (uint32_t)o->pid,
				.name = o->online ? "online" : "offline",
				.client_class = o->online ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE };
	if (ret->word)
		code = find_container(ret->word, &ret->pid);
	if (code >= 0)
		return code;
	ret->start = gp_proc_start("", ret->pid);
	if (!ret->start)
		return gp_fail(GP_EXIT_FAILED, "attach: there is no process %" PRIu32, ret->pid);
	ret->found.pid = ret->pid;
	gp_discover_processes(NULL, &ret->found, 1);
	return -1;
}

/* Who starts programs in it; NULL: nobody that we know. */
static const char *engine_of(const struct gp_found_client *c)
{
	if (!c->container[0] || c->pod[0])
		return NULL;
	if (strstr(c->cgroup, "docker"))
		return "docker";
	/* Where no cgroup has the id, podman's monitor told it. */
	return strstr(c->cgroup, "libpod") || !strstr(c->cgroup, c->container) ? "podman" : NULL;
}

static const char *command_of(const struct target *t, const char *agent, char *text, size_t size)
{
	const char *engine = engine_of(&t->found);

	if (engine)
		snprintf(text, size, "%s exec -e LD_PRELOAD=%s %.12s COMMAND", engine, agent,
			 t->found.container);
	else
		snprintf(text, size,
			 "nsenter --target %" PRIu32 " --all --root --wd env LD_PRELOAD=%s COMMAND", t->pid,
			 agent);
	return text;
}

static void print(const struct target *t, const char *command, int as_json)
{
	struct json_object *o;

	if (!as_json) {
		printf("Attached as %s: process %" PRIu32
		       " and its container. This starts a program there under gpreempt:\n%s\n",
		       t->name, t->pid, command);
		return;
	}
	o = json_object_new_object();
	gp_json_add_text(o, "schema", "gpreempt-attach-1");
	gp_json_add_int(o, "pid", t->pid);
	gp_json_add_text(o, "class", t->name);
	gp_json_add_text(o, "container", t->found.container);
	gp_json_add_text(o, "command", command);
	gp_json_print(o);
}

/* The agent first: a program that is started as the line says finds it. */
static int attach(const struct target *t, struct gp_ctx *ctx, int as_json)
{
	char own[PATH_MAX], command[256];
	const char *agent;
	uint32_t rights;
	int code, r = gp_ctx_rights(ctx, &rights);

	if (r < 0)
		return gp_machine_fail(ctx, r);
	if (!gp_agent_find(own))
		return gp_fail(GP_EXIT_FAILED, "there is no agent at %s; GPREEMPT_AGENT=FILE names another",
			       own);
	code = gp_agent_bring(own, t->pid, t->start, &agent);
	if (code >= 0)
		return code;
	r = gp_container_attach(ctx, t->pid, t->start, t->client_class);
	if (r < 0)
		return gp_machine_fail(ctx, r);
	print(t, command_of(t, agent, command, sizeof(command)), as_json);
	return GP_EXIT_OK;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options o;
	struct target target;
	struct gp_ctx *ctx;
	int code = gp_options_parse(verb, argc, argv, 0, 1, &o);

	if (code < 0)
		code = check(&o);
	if (code < 0 && o.list)
		return gp_attached_print(&o);
	if (code < 0)
		code = find(&o, &target);
	if (code < 0)
		code = gp_machine_open(&o, NULL, &ctx);
	if (code >= 0)
		return code;
	code = attach(&target, ctx, o.json);
	gp_ctx_close(ctx);
	return code;
}

const struct gp_verb gp_verb_attach = {
	.name = "attach",
	.summary = "give a container that runs already a class",
	.usage = usage,
	.options = "online offline pid list socket json",
	.run = run,
};
