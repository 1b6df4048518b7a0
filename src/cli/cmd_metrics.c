// SPDX-License-Identifier: MIT
/* The exporter is a program of its own, with an HTTP library: this finds it, and becomes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/owned.h"
#include "cli/near.h"
#include "cli/options.h"

static const char usage[] =
	"usage: gpreempt metrics [options]\n"
	"\n"
	"Serves what gpreemptd counts to Prometheus, at /metrics: preemptions, latencies as histograms,\n"
	"latency objectives, each class's share, failures by reason. It needs no rights. While gpreemptd\n"
	"is away gpreempt_up is 0.\n"
	"\n"
	"  --listen ADDRESS   where, as 9847, 0.0.0.0:9847 or [::1]:9847 (127.0.0.1:" GP_METRICS_PORT ")\n"
	"  --unix PATH        on a unix socket instead\n"
	"  --once             print them and end\n"
	"  --per-client       also for each process: many, if many come and go\n"
	"  --socket PATH      gpreemptd's\n"
	"\n"
	"examples:\n"
	"  gpreempt metrics\n"
	"  gpreempt metrics --listen 0.0.0.0:9847\n"
	"  gpreempt metrics --once | grep gpreempt_up\n";

/* In a build, beside an installation that was moved, or where it was installed. */
static int find(char path[PATH_MAX])
{
	static const char *const places[] = { GP_METRICS_PROGRAM, "../libexec/gpreempt/" GP_METRICS_PROGRAM };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (gp_near_find(places[i], path))
			return 0;
	return gp_owned_path(GPREEMPT_LIBEXECDIR "/gpreempt/" GP_METRICS_PROGRAM, path);
}

static int check(const struct gp_options *o)
{
	if ((o->listen != NULL) + (o->unix_path != NULL) + o->once > 1)
		return gp_fail(GP_EXIT_BAD_INPUT, "metrics: give one of --listen, --unix and --once");
	return -1;
}

static int become(const struct gp_options *o)
{
	const char *const words[] = { GP_METRICS_PROGRAM,
				      o->once        ? "once"
				      : o->unix_path ? "unix"
						     : "listen",
				      o->unix_path ? o->unix_path
				      : o->listen  ? o->listen
						   : GP_METRICS_PORT,
				      o->socket ? o->socket : "",
				      o->per_client ? "clients" : "classes",
				      NULL };
	char path[PATH_MAX];
	int r = find(path);

	if (r < 0)
		return gp_fail(GP_EXIT_FAILED,
			       r == -EPERM ? "metrics: others than root and you can write %s"
					   : "metrics: there is no " GP_METRICS_PROGRAM
					     " beside this program, or at %s; install the package "
					     "gpreempt-metrics, or build it with libmicrohttpd",
			       path);
	execv(path, (char *const *)words);
	return gp_fail(GP_EXIT_FAILED, "metrics: %s cannot be executed: %s", path, strerror(errno));
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options o;
	int code = gp_options_parse(verb, argc, argv, 0, 0, &o);

	if (code < 0)
		code = check(&o);
	return code < 0 ? become(&o) : code;
}

const struct gp_verb gp_verb_metrics = {
	.name = "metrics",
	.summary = "what gpreemptd counts, for Prometheus",
	.usage = usage,
	.options = "listen unix once per-client socket",
	.run = run,
};
