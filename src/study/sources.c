// SPDX-License-Identifier: MIT
#include "study/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policy/load.h"
#include "policy/registry.h"
#include "study/files.h"
#include "ini/keys.h"

const struct gp_embed *gp_embed_find(const char *kind, const char *name)
{
	for (size_t i = 0; i < gp_nembeds; i++)
		if (!strcmp(gp_embeds[i].kind, kind) && !strcasecmp(gp_embeds[i].name, name))
			return &gp_embeds[i];
	return NULL;
}

void gp_embed_list(const char *kind, char *list, size_t size)
{
	size_t used = 0;

	list[0] = '\0';
	for (size_t i = 0; i < gp_nembeds && used < size; i++)
		if (!strcmp(gp_embeds[i].kind, kind))
			used += (size_t)snprintf(list + used, size - used, "%s%s", used ? " " : "",
						 gp_embeds[i].name);
}

static void list_configs(char *list, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < GP_CONFIG_COUNT && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", gp_config_name(i));
}

void gp_source_names(const char *kind, char *list, size_t size)
{
	if (!strcmp(kind, "policy"))
		gp_policy_names(list, size);
	else if (!strcmp(kind, "config"))
		list_configs(list, size);
	else
		gp_embed_list(kind, list, size);
}

static int is_file(const char *name, const char *ending)
{
	size_t len = strlen(name), end = strlen(ending);

	return strchr(name, '/') != NULL || (len > end && !strcmp(name + len - end, ending));
}

int gp_is_path(const char *name)
{
	return is_file(name, ".ini");
}

/* A file is meant as seen from the file that names it; from NULL: from here. */
static int read_beside(const char *name, const char *from, char *path, char **ret_text)
{
	const char *slash = from && name[0] != '/' ? strrchr(from, '/') : NULL;
	int dir = slash ? (int)(slash - from) + 1 : 0;

	if (snprintf(path, PATH_MAX, "%.*s%s", dir, slash ? from : "", name) >= PATH_MAX)
		return -ENAMETOOLONG;
	return gp_file_read(path, ret_text);
}

static int read_trace(void *arg, const char *name, const char *from, char **ret_text)
{
	char path[PATH_MAX];

	(void)arg;
	return read_beside(name, from, path, ret_text);
}

static int find_device(void *arg, const char *name, const char *from, struct gp_device_file *ret,
		       struct gp_diag *diag)
{
	const struct gp_embed *embed = gp_is_path(name) ? NULL : gp_embed_find("device", name);
	struct gp_sources *src = arg;
	char path[PATH_MAX];
	char *text;
	int r;

	if (!embed && !gp_is_path(name))
		return -ENOENT;
	if (embed) {
		r = gp_device_parse(embed->text, embed->name, ret, diag);
	} else {
		r = read_beside(name, from, path, &text);
		if (r < 0)
			return r;
		r = gp_device_parse(text, path, ret, diag);
		free(text);
	}
	if (r == 0)
		src->device = *ret;
	return r;
}

static int read_scenario(const char *name, const struct gp_place *at, char **ret_text)
{
	const struct gp_embed *embed = gp_is_path(name) ? NULL : gp_embed_find("scenario", name);
	char known[128];
	int r;

	if (embed) {
		*ret_text = strdup(embed->text);
		return *ret_text ? 0 : -ENOMEM;
	}
	if (!gp_is_path(name)) {
		gp_embed_list("scenario", known, sizeof(known));
		return gp_complain(at, "no such scenario; built in are: %s; a file is written as ./%s.ini",
				   known, name);
	}
	r = gp_file_read(name, ret_text);
	if (r == -EBADMSG)
		return gp_complain(at,
				   "not a text file; give a scenario such as gpreempt sim --show A prints");
	if (r < 0)
		return gp_complain(at, "%s; give a scenario's file, or see gpreempt sim --list",
				   strerror(-r));
	return 0;
}

/* What a file that is parsed may name. */
static struct gp_parse_env env_of(struct gp_sources *src, char *devices, size_t size)
{
	gp_embed_list("device", devices, size);
	return (struct gp_parse_env){
		.arg = src, .devices = devices, .device = find_device, .read = read_trace
	};
}

int gp_sources_cluster(struct gp_sources *src, const char *path, struct gp_cluster *ret, struct gp_diag *diag)
{
	const struct gp_place at = { .file = path, .diag = diag };
	char devices[128];
	struct gp_parse_env env = env_of(src, devices, sizeof(devices));
	int r;

	diag->text[0] = '\0';
	r = gp_file_read(path, &src->text);
	if (r < 0)
		return gp_complain(&at, "%s; give a cluster's file, as those of share/gpreempt/clusters",
				   r == -EBADMSG ? "not a text file" : strerror(-r));
	r = gp_cluster_parse(src->text, path, &env, ret, diag);
	if (r < 0)
		gp_sources_free(src);
	return r;
}

int gp_sources_scenario(struct gp_sources *src, const char *name, struct gp_scenario *ret,
			struct gp_diag *diag)
{
	const struct gp_place at = { .file = name, .diag = diag };
	char devices[128];
	struct gp_parse_env env = env_of(src, devices, sizeof(devices));
	int r;

	diag->text[0] = '\0';
	r = read_scenario(name, &at, &src->text);
	if (r < 0)
		return r;
	r = gp_scenario_parse(src->text, name, &env, ret, diag);
	if (r < 0)
		gp_sources_free(src);
	return r;
}

int gp_sources_device(struct gp_sources *src, const char *name, struct gp_scenario *sc, struct gp_diag *diag)
{
	const struct gp_place at = { .file = "--device", .diag = diag };
	struct gp_device_file file;
	char known[128];
	int r;

	diag->text[0] = '\0';
	r = find_device(src, name, NULL, &file, diag);
	if (r == 0) {
		gp_scenario_set_device(sc, &file.device);
		memcpy(sc->device_name, file.name, sizeof(sc->device_name));
		return 0;
	}
	gp_embed_list("device", known, sizeof(known));
	(void)gp_complain(&at, "cannot read \"%.80s\": %s; give one of: %s, or a file: ./mine.ini", name,
			  strerror(-r), known);
	return r;
}

int gp_sources_policy(const char *name, struct gp_scenario *sc, struct gp_diag *diag)
{
	static const struct gp_key key = { .name = "policy", .size = sizeof(sc->policy) };
	const struct gp_place at = { .file = "--policy", .diag = diag };
	const struct gp_policy_ops *ops;
	char why[160];
	int r;

	diag->text[0] = '\0';
	if (!is_file(name, ".so"))
		return gp_set_policy(&key, &at, name, sc->policy);
	r = gp_policy_load(name, &ops, why, sizeof(why));
	if (r < 0)
		return gp_complain(&at, "%.80s: %s", name, why);
	r = gp_set_name(&key, &at, ops->name, sc->policy);
	if (r == 0)
		sc->policy_ops = ops;
	return r;
}

void gp_sources_free(struct gp_sources *src)
{
	free(src->text);
	src->text = NULL;
}
