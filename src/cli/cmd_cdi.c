// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/listen.h"
#include "base/owned.h"
#include "base/places.h"
#include "cli/options.h"
#include "cli/preload.h"
#include "study/files.h"
#include "study/json.h"

#define USUAL_FILE "/etc/cdi/gpreempt.json"
#define KIND "gpreempt.dev/class"
#define PRELOAD "LD_PRELOAD=" GP_AGENT_INSIDE

static const char usage[] =
	"usage: gpreempt cdi [options]\n"
	"\n"
	"Makes the classes known to Docker and Podman, as devices by the Container Device Interface. Which\n"
	"one a container is started with decides what all of it is, not what the container says of itself.\n"
	"\n"
	"  --out FILE         where to write that (" USUAL_FILE ")\n"
	"  --docker-args CLASS\n"
	"                     write nothing; print the words that say the same to a Docker before 25\n"
	"  --class-sockets DIR\n"
	"                     gpreemptd's, if it was started with others (" GP_CLASS_FOLDER ")\n"
	"\n"
	"examples:\n"
	"  gpreempt cdi; docker run --device " KIND "=online IMAGE\n"
	"  docker run $(gpreempt cdi --docker-args offline) IMAGE\n";

static const char *const classes[] = { "online", "offline" };

/* What is on the host. */
struct sources {
	char agent[PATH_MAX];
	const char *sockets; /* the folder around the classes' */
};

/* What a shell, -v and LD_PRELOAD all take as it stands. */
static bool is_plain(const char *path)
{
	for (const char *at = path; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("/._+@-", *at))
			return false;
	return path[0] == '/';
}

/* Every container will load it. */
static int check_agent(char agent[PATH_MAX])
{
	char path[PATH_MAX];
	int r;

	if (!gp_is_library(agent))
		return gp_fail(GP_EXIT_BAD_INPUT, "%s is no library; GPREEMPT_AGENT=FILE names another",
			       agent);
	strcpy(path, agent);
	r = gp_owned_path(path, agent);
	if (r < 0)
		return gp_fail(
			GP_EXIT_FAILED,
			"%s: the agent for all containers must be writable by root and you alone, and so "
			"must the folders around it: %s",
			agent, strerror(-r));
	return GP_EXIT_OK;
}

static int find_sources(const struct gp_options *o, struct sources *ret)
{
	static const char longest[] = "/offline/" GP_SOCKET_NAME;
	const char *odd;
	int code;

	ret->sockets = o->class_sockets ? o->class_sockets : GP_CLASS_FOLDER;
	if (strlen(ret->sockets) + sizeof(longest) > sizeof(((struct sockaddr_un *)0)->sun_path))
		return gp_fail(GP_EXIT_BAD_INPUT, "--class-sockets: no socket can have a path so long");
	if (!gp_agent_find(ret->agent))
		return gp_fail(GP_EXIT_FAILED, "there is no agent at %s; GPREEMPT_AGENT=FILE names another",
			       ret->agent);
	code = check_agent(ret->agent);
	if (code != GP_EXIT_OK)
		return code;
	odd = !is_plain(ret->agent) ? ret->agent : !is_plain(ret->sockets) ? ret->sockets : NULL;
	if (odd)
		return gp_fail(
			GP_EXIT_BAD_INPUT,
			"%s: only whole paths of letters, digits and /._+@- can be given to containers", odd);
	return GP_EXIT_OK;
}

/* As a file */

static struct json_object *strings(const char *const *text, size_t n)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(list, json_object_new_string(text[i]));
	return list;
}

/* A list of one. */
static struct json_object *mount_of(const char *from, const char *to)
{
	static const char *const options[] = { "ro", "nosuid", "nodev", "bind" };
	struct json_object *list = json_object_new_array(), *one = json_object_new_object();

	gp_json_add_text(one, "hostPath", from);
	gp_json_add_text(one, "containerPath", to);
	json_object_object_add(one, "options", strings(options, sizeof(options) / sizeof(options[0])));
	json_object_array_add(list, one);
	return list;
}

static struct json_object *device_of(const char *name, const struct sources *from)
{
	struct json_object *device = json_object_new_object(), *edits = json_object_new_object();
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/%s", from->sockets, name);
	json_object_object_add(edits, "mounts", mount_of(folder, GP_RUN_FOLDER));
	gp_json_add_text(device, "name", name);
	json_object_object_add(device, "containerEdits", edits);
	return device;
}

/* All of it is in version 0.3.0 already, which Podman 4.3 and Docker 25 read. */
static struct json_object *describe(const struct sources *from)
{
	static const char *const variables[] = { PRELOAD };
	struct json_object *all = json_object_new_object(), *edits = json_object_new_object();
	struct json_object *devices = json_object_new_array();

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		json_object_array_add(devices, device_of(classes[i], from));
	json_object_object_add(edits, "env", strings(variables, 1));
	json_object_object_add(edits, "mounts", mount_of(from->agent, GP_AGENT_INSIDE));
	gp_json_add_text(all, "cdiVersion", "0.3.0");
	gp_json_add_text(all, "kind", KIND);
	json_object_object_add(all, "containerEdits", edits);
	json_object_object_add(all, "devices", devices);
	return all;
}

/* Only the usual folder is made: another that is missing is a mistake in what was typed. */
static int check_out(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (stat(folder, &st) < 0)
		return gp_fail(GP_EXIT_FAILED, "%s: there is no folder %s: %s; make it first", path, folder,
			       strerror(errno));
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return gp_fail(GP_EXIT_FAILED, "%s is there and is no file; choose another place by --out",
			       path);
	return GP_EXIT_OK;
}

static int write_file(const char *path, const struct sources *from)
{
	struct json_object *all = describe(from);
	int r;

	(void)umask(umask(0) | 022); /* who can write it decides what all containers load */
	r = gp_file_write(path, gp_json_text(all));
	json_object_put(all);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s: cannot write it: %s%s", path, strerror(-r),
			       r == -EACCES ? "; run it as root, or choose another place by --out" : "");
	printf("Wrote %s: --device " KIND "=online, --device " KIND "=offline.\n", path);
	return GP_EXIT_OK;
}

/* As words */

static int print_words(const char *name, const struct sources *from)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strcmp(classes[i], name) != 0)
			continue;
		printf("-v %s/%s:" GP_RUN_FOLDER ":ro -v %s:" GP_AGENT_INSIDE ":ro -e " PRELOAD "\n",
		       from->sockets, name, from->agent);
		return GP_EXIT_OK;
	}
	return gp_fail(GP_EXIT_BAD_INPUT, "--docker-args: \"%s\" is no class; write online or offline", name);
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct sources from;
	struct gp_options o;
	int code = gp_options_parse(verb, argc, argv, 0, 0, &o);

	if (code >= 0)
		return code;
	if (o.out && o.docker_args)
		return gp_fail(GP_EXIT_BAD_INPUT, "--out and --docker-args: choose one of them");
	code = find_sources(&o, &from);
	if (code == GP_EXIT_OK && o.out)
		code = check_out(o.out);
	if (code != GP_EXIT_OK)
		return code;
	return o.docker_args ? print_words(o.docker_args, &from)
			     : write_file(o.out ? o.out : USUAL_FILE, &from);
}

const struct gp_verb gp_verb_cdi = {
	.name = "cdi",
	.summary = "make the classes known to Docker and Podman",
	.usage = usage,
	.options = "out docker-args class-sockets",
	.run = run,
};
