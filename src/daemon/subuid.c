// SPDX-License-Identifier: MIT
#include "daemon/subuid.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MOST_RANGES 1024
#define NAMELESS (1ull << 33) /* beside the first uid that the owner was lent */

struct range {
	uint64_t owner;
	uint32_t first, count;
	char name[64];
};

/* The file as it was when it was last read: read anew when it changes. */
static struct {
	struct timespec changed;
	size_t n;
	struct range range[MOST_RANGES];
} known;

static FILE *open_under(const char *root, const char *path)
{
	char full[256];

	if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full))
		return NULL;
	return fopen(full, "re");
}

/* Both a name and a number are allowed there, subuid(5). */
static uint64_t owner_of(const struct range *r, FILE *passwd)
{
	char *end;
	unsigned long uid = strtoul(r->name, &end, 10);
	const struct passwd *user;

	if (*r->name && !*end)
		return (uint32_t)uid;
	if (passwd)
		rewind(passwd);
	while (passwd && (user = fgetpwent(passwd)))
		if (!strcmp(user->pw_name, r->name))
			return user->pw_uid;
	for (size_t i = 0; i < known.n; i++)
		if (!strcmp(known.range[i].name, r->name))
			return known.range[i].owner; /* the same nameless one */
	return NAMELESS | r->first;
}

static void read_ranges(FILE *file, const char *root)
{
	FILE *passwd = open_under(root, "/etc/passwd");
	char line[256];

	known.n = 0;
	while (known.n < MOST_RANGES && fgets(line, sizeof(line), file)) {
		struct range *r = &known.range[known.n];

		if (sscanf(line, "%63[^:]:%u:%u", r->name, &r->first, &r->count) != 3)
			continue;
		r->owner = owner_of(r, passwd);
		known.n++;
	}
	if (passwd)
		fclose(passwd);
}

static void refresh(const char *root)
{
	FILE *file = open_under(root, "/etc/subuid");
	struct stat st;

	if (!file || fstat(fileno(file), &st) < 0)
		memset(&known, 0, sizeof(known));
	else if (memcmp(&st.st_mtim, &known.changed, sizeof(known.changed)) != 0) {
		known.changed = st.st_mtim;
		read_ranges(file, root);
	}
	if (file)
		fclose(file);
}

uint64_t gp_subuid_owner(const char *root, uint32_t uid)
{
	refresh(root);
	for (size_t i = 0; i < known.n; i++)
		if (uid >= known.range[i].first && uid - known.range[i].first < known.range[i].count)
			return known.range[i].owner;
	return uid;
}
