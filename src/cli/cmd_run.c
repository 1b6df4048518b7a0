// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/machine_list.h"
#include "cli/names.h"
#include "cli/options.h"
#include "cli/preload.h"
#include "cli/wrap.h"
#include "base/units.h"
#include "ini/words.h"

/* As shells have it. */
#define CANNOT_RUN 126
#define NOT_FOUND 127

static const char usage[] =
	"usage: gpreempt run [options] [--] COMMAND [ARGUMENT...]\n"
	"       gpreempt run [options] --print-env\n"
	"\n"
	"Runs a program whose GPU queues gpreemptd can stop and resume. Input, output, signals and\n"
	"exit status are the program's own. Without --online or --offline gpreemptd's rules decide.\n"
	"\n"
	"  --online           its requests take the GPU from offline work\n"
	"  --offline          it gives the GPU to online work\n"
	"  --weight N         its share among its class, 1 to 10000; 100 is usual\n"
	"  --slo TIME         how long a request of it may take, as 20ms\n"
	"  --tag NAME         AMD_QUEUE_TAG: what rules know it by\n"
	"  --device N[,N...]  the GPUs that it sees, by ROCm's numbers\n"
	"  --socket PATH      gpreemptd's\n"
	"  --quiet            do not say that nobody schedules it, and why\n"
	"  --print-env        run nothing: print the environment that it would have, for a shell\n"
	"\n"
	"examples:\n"
	"  gpreempt run --offline -- python train.py\n"
	"  gpreempt run --online --slo 20ms -- ./serve --port 8000\n"
	"  eval \"$(gpreempt run --offline --print-env)\"; python train.py\n";

/* What the user should know, in one line. */
#define REMARK(o, ...) ((void)((o)->quiet || gp_fail(0, __VA_ARGS__)))

/* Who is asked of what there is: gpreemptd, or without one the machine's files. */
static int open_kfd(const struct gp_options *o, char *why, size_t size, struct gp_ctx **ret)
{
	const struct gp_open_opts open = { .size = sizeof(open),
					   .backend = "kfd",
					   .socket = o->socket,
					   .errmsg = why,
					   .errmsg_size = size };

	return gp_ctx_open(&open, ret);
}

/* How many GPUs there are here, and of those NVIDIA's; 0: nobody knows of one. */
static uint64_t count_gpus(const struct gp_options *o, uint64_t *ret_nvidia)
{
	struct gp_machine_list list;
	struct gp_ctx *ctx;
	uint64_t n = 0;
	char why[320];

	*ret_nvidia = 0;
	if (open_kfd(o, why, sizeof(why), &ctx) < 0)
		return 0;
	if (gp_machine_list_read(ctx, &list) == 0) {
		for (size_t i = 0; i < list.ndevices; i++) {
			n += !gp_device_is_simulated(&list.devices[i]);
			*ret_nvidia += !strcmp(list.devices[i].backend, "nvrm");
		}
		gp_machine_list_free(&list);
	}
	gp_ctx_close(ctx);
	return n;
}

/* HIP reads CUDA's variable too, and counts within what ROCR_VISIBLE_DEVICES leaves: both would choose twice.
 */
static bool is_for_cuda(const struct gp_options *o)
{
	uint64_t nvidia;

	return o->device && count_gpus(o, &nvidia) == nvidia && nvidia;
}

static int check_gpus(const struct gp_options *o)
{
	uint64_t number, nvidia, n = count_gpus(o, &nvidia);
	const char *at = o->device;
	char one[32];

	if (!n)
		REMARK(o, "--device %s: nobody here knows whether there is such a GPU", o->device);
	while (n && gp_word_next(&at, one, sizeof(one)))
		if (gp_count_parse(one, &number) < 0 || number >= n)
			return gp_fail(GP_EXIT_BAD_INPUT,
				       "--device: there is no GPU %s: there %s %" PRIu64 ", numbered from 0",
				       one, n == 1 ? "is" : "are", n);
	return -1;
}

static int check(const struct gp_options *o)
{
	size_t len = o->device ? strlen(o->device) : 0;

	if (o->argc && o->print_env)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "run: --print-env runs nothing: write a command, or --print-env");
	if (!o->argc && !o->print_env)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "run: say what to run, as in: gpreempt run --offline -- python train.py");
	if (o->online && o->offline)
		return gp_fail(GP_EXIT_BAD_INPUT, "run: --online and --offline: write one of them");
	if (len && (strspn(o->device, "0123456789,") < len || o->device[0] == ',' ||
		    o->device[len - 1] == ',' || strstr(o->device, ",,")))
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "--device: \"%s\" is no list of GPUs; write their numbers, as in: 0,2",
			       o->device);
	return o->device ? check_gpus(o) : -1;
}

/* The environment */

static int set_number(const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return setenv(name, text, 1);
}

/* The program may go elsewhere. */
static int set_socket(const char *path)
{
	char *folder, *whole;
	int r = -1;

	if (path[0] == '/')
		return setenv("GPREEMPT_SOCKET", path, 1);
	folder = getcwd(NULL, 0);
	if (folder && asprintf(&whole, "%s/%s", folder, path) >= 0) {
		r = setenv("GPREEMPT_SOCKET", whole, 1);
		free(whole);
	}
	free(folder);
	return r;
}

/* By the PCI addresses, as our numbers are. */
static int set_devices(const struct gp_options *o)
{
	if (!is_for_cuda(o))
		return setenv("ROCR_VISIBLE_DEVICES", o->device, 1);
	return setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) | setenv("CUDA_VISIBLE_DEVICES", o->device, 1);
}

/* What somebody has said before of queues of the other class, as a server in whose environment a training is
 * started. */
static bool is_contradicted(const struct gp_options *o)
{
	const char *tag = getenv("AMD_QUEUE_TAG");

	return !o->tag && tag &&
	       ((o->offline && !strcmp(tag, "ONLINE_AI")) || (o->online && !strcmp(tag, "OFFLINE_AI")));
}

/* What is not given stays as it is, unless it is of the other class. */
static int set_environment(const struct gp_options *o)
{
	int r = 0;

	if (is_contradicted(o))
		r |= unsetenv("AMD_QUEUE_TAG") | unsetenv("AMD_QUEUE_PRIORITY");
	if (o->online || o->offline)
		r |= setenv("GPREEMPT_CLASS", o->online ? "online" : "offline", 1);
	if (o->weight)
		r |= set_number("GPREEMPT_WEIGHT", o->weight);
	if (o->slo_ns)
		r |= set_number("GPREEMPT_SLO", o->slo_ns);
	if (o->tag)
		r |= setenv("AMD_QUEUE_TAG", o->tag, 1);
	if (o->device)
		r |= set_devices(o);
	if (o->socket)
		r |= set_socket(o->socket);
	return r;
}

/* Before what is there; once, if an outer run has done so. */
static int set_preload(const char *agent)
{
	const char *there = getenv("LD_PRELOAD");
	size_t len = strlen(agent);
	char *all;
	int r;

	if (!there || !*there)
		return setenv("LD_PRELOAD", agent, 1);
	if (!strncmp(there, agent, len) && strchr(": ", there[len]))
		return 0;
	if (asprintf(&all, "%s:%s", agent, there) < 0)
		return -1;
	r = setenv("LD_PRELOAD", all, 1);
	free(all);
	return r;
}

/* Who schedules it */

/* In a container with a class. */
static void compare_class(const struct gp_options *o, int is_online)
{
	if (is_online ? o->offline : o->online)
		REMARK(o, "gpreemptd will take it for %s: that is what this container was given",
		       is_online ? "online" : "offline");
}

static void remark_on_online(const struct gp_options *o, uint32_t rights)
{
	if (rights & GP_IN_CONTAINER)
		REMARK(o,
		       "gpreemptd will take it for offline: a container's own word does not count; root on the "
		       "host gives it a class, see gpreempt cdi");
	else if (geteuid() == 0)
		REMARK(o, "gpreemptd will take it for offline: root without CAP_SYS_ADMIN does not count");
	else
		REMARK(o,
		       "gpreemptd will take it for offline: you are neither root nor in group gpreempt; %s",
		       gp_group_advice());
}

static void ask_daemon(const struct gp_options *o)
{
	char why[320] = "";
	struct gp_ctx *ctx;
	uint32_t rights;

	if (open_kfd(o, why, sizeof(why), &ctx) < 0) {
		REMARK(o, "nobody schedules it: %s", why);
		return;
	}
	if (gp_ctx_rights(ctx, &rights) < 0)
		REMARK(o, "nobody schedules it: %s", gp_ctx_errmsg(ctx));
	else if (rights & (GP_GIVEN_ONLINE | GP_GIVEN_OFFLINE))
		compare_class(o, rights & GP_GIVEN_ONLINE);
	else if (o->online && !(rights & GP_RIGHT_OTHERS))
		remark_on_online(o, rights);
	gp_ctx_close(ctx);
}

/* Whether LD_PRELOAD is to name the agent; says why the program runs without it. */
static bool agent_goes_in(const struct gp_options *o, const char *file, char agent[PATH_MAX])
{
	struct gp_obstacle in_the_way;

	if (!gp_agent_find(agent)) {
		REMARK(o, "there is no agent at %s: it runs unscheduled; GPREEMPT_AGENT=FILE names another",
		       agent);
		return false;
	}
	if (strpbrk(agent, ": ")) {
		REMARK(o, "LD_PRELOAD takes no path with a space or a colon, as %s: it runs unscheduled",
		       agent);
		return false;
	}
	gp_obstacle_find(file, agent, &in_the_way);
	if (in_the_way.what && strcmp(in_the_way.program, file) != 0)
		REMARK(o, "%s, which runs %s, %s: it runs unscheduled", in_the_way.program, o->argv[0],
		       in_the_way.what);
	else if (in_the_way.what)
		REMARK(o, "%s %s: it runs unscheduled", o->argv[0], in_the_way.what);
	else
		ask_daemon(o);
	return !in_the_way.is_foreign;
}

/* For a shell */

static void print_set(const struct gp_options *o)
{
	bool cuda = is_for_cuda(o);
	const struct {
		const char *name;
		bool is_set;
	} all[] = {
		{ "LD_PRELOAD", true },
		{ "GPREEMPT_CLASS", o->online || o->offline },
		{ "GPREEMPT_WEIGHT", o->weight },
		{ "GPREEMPT_SLO", o->slo_ns },
		{ "AMD_QUEUE_TAG", o->tag },
		{ "GPREEMPT_SOCKET", o->socket },
		{ "CUDA_DEVICE_ORDER", cuda },
		{ "CUDA_VISIBLE_DEVICES", cuda },
		{ "ROCR_VISIBLE_DEVICES", o->device && !cuda },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!all[i].is_set)
			continue;
		printf("export %s", all[i].name);
		gp_print_argument(stdout, "=", getenv(all[i].name));
		putchar('\n');
	}
}

static int fail_environment(void)
{
	return gp_fail(GP_EXIT_FAILED, "cannot set the environment: %s", strerror(errno));
}

static int print_environment(const struct gp_options *o)
{
	char agent[PATH_MAX];

	if (!gp_agent_find(agent) || strpbrk(agent, ": "))
		return gp_fail(
			GP_EXIT_FAILED,
			"there is no agent at %s that LD_PRELOAD takes; GPREEMPT_AGENT=FILE names another",
			agent);
	if (is_contradicted(o))
		puts("unset AMD_QUEUE_TAG AMD_QUEUE_PRIORITY");
	if (set_preload(agent) < 0 || set_environment(o) < 0)
		return fail_environment();
	ask_daemon(o);
	print_set(o);
	return GP_EXIT_OK;
}

/* The program */

static int complain_command(const char *command, int r)
{
	if (r == -ENOENT && strchr(command, '/'))
		return gp_fail(NOT_FOUND, "%s: there is no such file", command);
	if (r == -ENOENT)
		return gp_fail(NOT_FOUND, "%s: no such command in PATH; for a file in this folder write ./%s",
			       command, command);
	if (r == -EISDIR)
		return gp_fail(CANNOT_RUN, "%s is a folder: write the path of a program", command);
	return gp_fail(CANNOT_RUN, "%s may not be executed; if it is a program: chmod +x %s", command,
		       command);
}

static int complain_exec(const char *command, int error)
{
	if (error == ENOENT)
		return gp_fail(
			CANNOT_RUN,
			"%s: its interpreter is not there; see its first line (#!), or its loader by: file %s",
			command, command);
	return gp_fail(CANNOT_RUN, "%s cannot be executed: %s", command, strerror(error));
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	char file[PATH_MAX], agent[PATH_MAX];
	struct gp_options o;
	int r, code = gp_options_parse(verb, argc, argv, 0, INT_MAX, &o);

	if (code < 0)
		code = check(&o);
	if (code >= 0)
		return code;
	if (o.print_env)
		return print_environment(&o);
	r = gp_command_find(o.argv[0], file);
	if (r < 0)
		return complain_command(o.argv[0], r);
	if ((agent_goes_in(&o, file, agent) && set_preload(agent) < 0) || set_environment(&o) < 0)
		return fail_environment();
	execvp(o.argv[0], o.argv);
	return complain_exec(o.argv[0], errno);
}

const struct gp_verb gp_verb_run = {
	.name = "run",
	.summary = "run a program that is scheduled",
	.usage = usage,
	.options = "online offline weight slo tag device socket quiet print-env",
	.has_command = 1,
	.run = run,
};
