// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/kfd/session.h"
#include "base/places.h"
#include "cli/device_stats.h"
#include "cli/doctor.h"
#include "cli/names.h"
#include "cli/preload.h"
#include "discover/discover.h"

#define CAP_SYS_ADMIN_BIT 21
#define MOST_DEVICES 64
#define START_OUTSIDE \
	"gpreemptd runs on the host: start it there; it is in a container that was started with a class, as " \
	"gpreempt cdi makes them known, or that gpreempt attach was called for."

/* Effective capabilities, as the kernel writes them. */
static int is_admin(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (file)
		fclose(file);
	return caps >> CAP_SYS_ADMIN_BIT & 1;
}

static int is_member(const char *name)
{
	gid_t gid, groups[256];
	int n = getgroups(256, groups);

	if (!gp_group_find(name, &gid))
		return 0;
	if (getegid() == gid)
		return 1;
	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return 1;
	return 0;
}

/* Those that matter here: "the groups render, video". */
static const char *our_groups(char *text, size_t size)
{
	static const char *const names[] = { "render", "video", GP_GROUP };
	size_t used = 0;

	snprintf(text, size, "none of the groups render, video and " GP_GROUP);
	for (size_t i = 0; i < 3; i++)
		if (is_member(names[i]))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "group ",
						 names[i]);
	return text;
}

/* As gpreemptd will see it, where none has said so. */
static uint32_t guess_rights(void)
{
	if (!gp_sees_host_pids())
		return GP_IN_CONTAINER;
	return (geteuid() == 0 && is_admin()) || is_member(GP_GROUP) ? GP_RIGHT_OTHERS : 0;
}

static const char *describe_rights(uint32_t rights)
{
	if (rights & (GP_GIVEN_ONLINE | GP_GIVEN_OFFLINE))
		return "you may act on queues of this container";
	if (rights & GP_OWN_DAEMON)
		return "you may act on all that this user's gpreemptd knows, which is this user's";
	if (rights & GP_RIGHT_OTHERS)
		return "you may act on everybody's queues";
	if (rights & GP_IN_CONTAINER)
		return "you may act on your own processes' queues; a container's root and groups have no rights "
		       "over others'";
	return "you may act on your own processes' queues; on others' as root with CAP_SYS_ADMIN, or as a member "
	       "of group " GP_GROUP;
}

static void check_rights(struct gp_findings *f, uint32_t rights)
{
	char groups[64];

	gp_finding_add(f, "rights", rights & GP_RIGHT_OTHERS && !(rights & GP_OWN_DAEMON) ? "yes" : "own",
		       "%s. You are user %u, %s CAP_SYS_ADMIN, in %s", describe_rights(rights),
		       (unsigned int)geteuid(), is_admin() ? "with" : "without",
		       our_groups(groups, sizeof(groups)));
	if (rights & (GP_GIVEN_ONLINE | GP_GIVEN_OFFLINE | GP_RIGHT_OTHERS))
		return;
	if (rights & GP_IN_CONTAINER)
		gp_advise(f, "To be online in a container: root on the host gives it the class, or a rule "
			     "(gpreempt cdi, gpreempt attach, gpreempt-classes).");
	else
		gp_advise(f, "To be online, or act on other users' queues: %s.", gp_group_advice());
}

static void check_class(struct gp_findings *f, uint32_t rights)
{
	if (rights & (GP_GIVEN_ONLINE | GP_GIVEN_OFFLINE))
		gp_finding_add(
			f, "class", "yes",
			"%s, by the socket that was given to this container: so is every program in it that "
			"gpreemptd reaches, whatever it says of itself",
			rights & GP_GIVEN_ONLINE ? "online" : "offline");
}

/* Where systemd looks by itself. */
static int has_unit(void)
{
	static const char *const folders[] = { "/etc", "/usr/local/lib", "/usr/lib", "/lib" };
	char path[64];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/systemd/system/gpreemptd.service", folders[i]);
		if (access(path, F_OK) == 0)
			return 1;
	}
	return 0;
}

static void advise_start(struct gp_findings *f)
{
	const char *folder = gp_own_folder();

	if (!gp_sees_host_pids())
		gp_advise(f, "%s", START_OUTSIDE);
	else if (has_unit())
		gp_advise(f,
			  "Start gpreemptd: sudo systemctl start gpreemptd, or %sgpreemptd & for your own "
			  "processes.",
			  folder);
	else
		gp_advise(f, "Start gpreemptd: sudo %sgpreemptd, or %sgpreemptd & for your own processes.",
			  folder, folder);
}

/* As the library looks for it: in one place that is named, else in root's and the user's own. */
static void report_absent(struct gp_findings *f)
{
	const char *named = secure_getenv("GPREEMPT_SOCKET"), *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int is_two = !named && runtime;

	if (named && !*named)
		gp_finding_add(f, "gpreemptd", "no", "GPREEMPT_SOCKET is empty: none is asked");
	else
		gp_finding_add(f, "gpreemptd", "no", "it does not run: nobody listens at %s%s%s%s",
			       named ? named : GP_RUN_FOLDER "/" GP_SOCKET_NAME, is_two ? ", nor at " : "",
			       is_two ? runtime : "", is_two ? "/" GP_RUN_NAME "/" GP_SOCKET_NAME : "");
	advise_start(f);
}

/* What its log tells, if it does not though the driver could. */
static const char *how_it_stops(struct gp_ctx *ctx)
{
	struct gp_device_info devices[MOST_DEVICES] = { { .size = sizeof(devices[0]) } };
	int n = gp_device_list(ctx, devices, MOST_DEVICES), batches = 0;

	for (int i = 0; i < n && i < MOST_DEVICES; i++)
		batches += !!(devices[i].caps & GP_CAP_BATCH);
	if (batches)
		return batches == n ? "; it stops them in scheduling sessions"
				    : "; it stops those of some GPUs in scheduling sessions";
	return gp_session_version("") ? "; it uses no scheduling sessions, though this driver has them: its "
					"log says why, or its --ways leave them out"
				      : "";
}

/* What a driver refused, or why a stop failed: the last of each device. */
static void check_trouble(struct gp_findings *f, struct gp_ctx *ctx)
{
	struct gp_device_info devices[MOST_DEVICES] = { { .size = sizeof(devices[0]) } };
	struct gp_stats stats = { .size = sizeof(stats) };
	char reason[GP_REASON_TEXT];
	int n = gp_device_list(ctx, devices, MOST_DEVICES);

	for (int i = 0; i < n && i < MOST_DEVICES; i++)
		if (gp_device_stats(ctx, devices[i].device, &stats) >= 0 && stats.reason[0])
			gp_finding_add(f, "trouble", "yes",
				       "device %u, the last: %s; gpreempt events has more", devices[i].device,
				       gp_reason_text(&stats, reason));
}

static void list_devices(struct gp_findings *f, struct gp_ctx *ctx)
{
	struct gp_device_info devices[MOST_DEVICES] = { { .size = sizeof(devices[0]) } };
	int n = gp_device_list(ctx, devices, MOST_DEVICES);
	char text[sizeof(f->items[0].detail)] = "none is known";
	size_t used = 0;

	for (int i = 0; i < n && i < MOST_DEVICES && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u: %s (%s%s%s)",
					 used ? ", " : "", devices[i].device, devices[i].name,
					 devices[i].backend, devices[i].pci[0] ? " " : "", devices[i].pci);
	gp_finding_add(f, "devices", n > 0 ? "yes" : "no", "%s", text);
}

static void report_daemon(struct gp_findings *f, struct gp_ctx *ctx, uint32_t rights)
{
	int n = gp_queue_list(ctx, NULL, 0);

	if (n < 0)
		gp_finding_add(f, "gpreemptd", "no", "%s", gp_ctx_errmsg(ctx));
	else
		gp_finding_add(f, "gpreemptd", "yes", "it runs%s, and knows %d queue%s%s",
			       rights & GP_OWN_DAEMON ? ", not root's but a user's own" : "", n,
			       n == 1 ? "" : "s", how_it_stops(ctx));
	if (n < 0)
		return;
	list_devices(f, ctx);
	gp_doctor_stops(f, ctx);
}

static void check_agent(struct gp_findings *f)
{
	char path[PATH_MAX];

	if (gp_agent_preloaded(path)) {
		gp_finding_add(f, "agent", "yes", "%s, by LD_PRELOAD", path);
		gp_advise(f, "Programs that are started here have the agent: start them as they are.");
	} else if (gp_agent_find(path)) {
		gp_finding_add(f, "agent", "yes", "%s", path);
		gp_advise(f,
			  "Start programs whose queues are to be stopped with: %sgpreempt run -- PROGRAM. "
			  "Where that cannot be: with the environment that %sgpreempt run --print-env "
			  "prints.",
			  gp_own_folder(), gp_own_folder());
	} else {
		gp_finding_add(f, "agent", "no", "%s is not there; GPREEMPT_AGENT=FILE names another", path);
	}
}

void gp_doctor_scheduler(struct gp_findings *f)
{
	char why[320] = "";
	const struct gp_open_opts opts = {
		.size = sizeof(opts), .backend = "kfd", .errmsg = why, .errmsg_size = sizeof(why)
	};
	struct gp_ctx *ctx = NULL;
	uint32_t rights = 0;
	int r = gp_ctx_open(&opts, &ctx);
	int asked = r < 0 ? r : gp_ctx_rights(ctx, &rights);

	if (asked < 0)
		rights = guess_rights();
	check_rights(f, rights);
	check_class(f, rights);
	if (asked == -ENODEV) /* the driver has its own line */
		report_absent(f);
	else if (r < 0)
		gp_finding_add(f, "gpreemptd", r == -EPERM || r == -EACCES ? "denied" : "no", "%s", why);
	else
		report_daemon(f, ctx, rights);
	if (r >= 0)
		check_trouble(f, ctx);
	gp_ctx_close(ctx);
	check_agent(f);
}
