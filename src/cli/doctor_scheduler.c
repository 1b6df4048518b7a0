// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/names.h"
#include "cli/preload.h"

#define CAP_SYS_ADMIN_BIT 21
#define START_DAEMON "Start gpreemptd: sudo systemctl start gpreemptd, or gpreemptd & for your own processes."

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

/* Those that matter here: "render, video". */
static const char *our_groups(char *text, size_t size)
{
	static const char *const names[] = { "render", "video", GP_GROUP };
	size_t used = 0;

	snprintf(text, size, "none of render, video, " GP_GROUP);
	for (size_t i = 0; i < 3; i++)
		if (is_member(names[i]))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 names[i]);
	return text;
}

static void check_rights(struct gp_findings *f)
{
	char groups[64];
	int others = (geteuid() == 0 && is_admin()) || is_member(GP_GROUP);

	gp_finding_add(
		f, "rights", others ? "yes" : "own", "user %u, groups: %s, CAP_SYS_ADMIN: %s: %s",
		(unsigned int)geteuid(), our_groups(groups, sizeof(groups)), is_admin() ? "yes" : "no",
		others ? "you may act on everybody's queues"
		       : "you may act on your own processes' queues; on others' as root with CAP_SYS_ADMIN, or "
			 "as a member of group " GP_GROUP);
	if (!others)
		gp_advise(f, "To be online, or act on other users' queues: %s.", gp_group_advice());
}

static void check_daemon(struct gp_findings *f)
{
	char why[320] = "";
	const struct gp_open_opts opts = {
		.size = sizeof(opts), .backend = "kfd", .errmsg = why, .errmsg_size = sizeof(why)
	};
	struct gp_ctx *ctx;
	const char *absent;
	int r = gp_ctx_open(&opts, &ctx);

	if (r < 0) {
		absent = r == -ENODEV ? strstr(why, "no gpreemptd") : NULL; /* the driver has its own line */
		if (absent)
			why[strcspn(why, ";")] = '\0';
		gp_finding_add(f, "gpreemptd", r == -EPERM || r == -EACCES ? "denied" : "no", "%s",
			       absent ? absent : why);
		if (absent)
			gp_advise(f, START_DAEMON);
		return;
	}
	if (gp_ctx_notice(ctx)[0]) {
		gp_finding_add(f, "gpreemptd", "no", "%s", gp_ctx_notice(ctx));
		gp_advise(f, START_DAEMON);
	} else {
		gp_finding_add(f, "gpreemptd", "yes", "it runs, and knows %d queues",
			       gp_queue_list(ctx, NULL, 0));
	}
	gp_ctx_close(ctx);
}

static void check_agent(struct gp_findings *f)
{
	char path[PATH_MAX];

	if (gp_agent_find(path)) {
		gp_finding_add(f, "agent", "yes", "%s", path);
		gp_advise(f,
			  "Start programs whose queues are to be stopped with: gpreempt run -- PROGRAM. "
			  "Where that cannot be: with the environment that gpreempt run --print-env prints.");
	} else {
		gp_finding_add(f, "agent", "no", "%s is not there; GPREEMPT_AGENT=FILE names another", path);
	}
}

void gp_doctor_scheduler(struct gp_findings *f)
{
	check_rights(f);
	check_daemon(f);
	check_agent(f);
}
