// SPDX-License-Identifier: MIT
#include "daemon/subuid.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_RANGES 1024

/* The file as it was when it was last read: read anew when it changes. */
static struct {
	struct timespec changed;
	size_t n;
	struct {
		uint32_t owner, first, count;
	} range[MOST_RANGES];
} known;

/* Both a name and a number are allowed there, subuid(5). */
static bool owner_named(const char *name, uint32_t *ret)
{
	const struct passwd *user;
	char *end;
	unsigned long uid = strtoul(name, &end, 10);

	if (*name && !*end) {
		*ret = (uint32_t)uid;
		return true;
	}
	user = getpwnam(name);
	if (user)
		*ret = user->pw_uid;
	return user;
}

static void read_ranges(FILE *file)
{
	char line[256], name[64];
	uint32_t owner;
	unsigned first, count;

	known.n = 0;
	while (known.n < MOST_RANGES && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63[^:]:%u:%u", name, &first, &count) != 3 || !owner_named(name, &owner))
			continue;
		known.range[known.n].owner = owner;
		known.range[known.n].first = first;
		known.range[known.n++].count = count;
	}
}

static void refresh(const char *root)
{
	char path[256];
	struct stat st;
	FILE *file;

	snprintf(path, sizeof(path), "%s/etc/subuid", root);
	if (stat(path, &st) < 0) {
		known.n = 0;
		return;
	}
	if (!memcmp(&st.st_mtim, &known.changed, sizeof(known.changed)))
		return;
	file = fopen(path, "re");
	if (!file)
		return;
	known.changed = st.st_mtim;
	read_ranges(file);
	fclose(file);
}

uint32_t gp_subuid_owner(const char *root, uint32_t uid)
{
	refresh(root);
	for (size_t i = 0; i < known.n; i++)
		if (uid >= known.range[i].first && uid - known.range[i].first < known.range[i].count)
			return known.range[i].owner;
	return uid;
}
