// SPDX-License-Identifier: MIT
#include "cli/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GETENT "/usr/bin/getent"

/* A line of /etc/passwd or /etc/group begins so: "name:password:number:". */
struct account {
	char name[GP_ACCOUNT_NAME];
	unsigned int number;
};

static bool read_account(const char *line, struct account *ret)
{
	const char *first = strchr(line, ':');
	const char *second = first ? strchr(first + 1, ':') : NULL;

	if (!second || sscanf(second, ":%u:", &ret->number) != 1)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(first - line), line);
	return true;
}

/* By name, or by number where name is NULL. */
static bool is_wanted(const struct account *a, const char *name, unsigned int number)
{
	return name ? !strcmp(a->name, name) : a->number == number;
}

/* Lines may be of any length: a group has any number of members. */
static bool find_line(FILE *file, const char *name, unsigned int number, struct account *ret)
{
	char *line = NULL;
	bool found = false;
	size_t size = 0;

	while (file && !found && getline(&line, &size, file) >= 0)
		found = read_account(line, ret) && is_wanted(ret, name, number);
	free(line);
	return found;
}

static bool find_in_file(const char *what, const char *name, unsigned int number, struct account *ret)
{
	char path[32];
	FILE *file;
	bool found;

	snprintf(path, sizeof(path), "/etc/%s", what);
	file = fopen(path, "re");
	found = find_line(file, name, number, ret);
	if (file)
		(void)fclose(file);
	return found;
}

/* Names are our own: a shell sees no other's. */
static bool ask_getent(const char *what, const char *name, unsigned int number, struct account *ret)
{
	char command[128], key[12];
	FILE *said;
	bool found;

	snprintf(key, sizeof(key), "%u", number);
	snprintf(command, sizeof(command), GETENT " %s %s 2>/dev/null", what, name ? name : key);
	said = popen(command, "re");
	found = find_line(said, name, number, ret);
	if (said)
		(void)pclose(said);
	return found;
}

static bool find(const char *what, const char *name, unsigned int number, struct account *ret)
{
	return find_in_file(what, name, number, ret) || ask_getent(what, name, number, ret);
}

struct answer {
	const char *what; /* NULL: none yet */
	unsigned int number;
	bool found;
	char name[GP_ACCOUNT_NAME]; /* or the number */
};

static struct answer ask(const char *what, unsigned int number)
{
	struct answer to = { .what = what, .number = number };
	struct account a;

	to.found = find(what, NULL, number, &a);
	if (to.found)
		memcpy(to.name, a.name, sizeof(a.name));
	else
		snprintf(to.name, sizeof(to.name), "%u", number);
	return to;
}

/* False: it has none, and name is the number. The last answers are remembered: a list asks the same again for
 * each of its rows, and one by getent costs two processes. */
static bool name_of(const char *what, unsigned int number, char name[GP_ACCOUNT_NAME])
{
	static struct answer last[16];
	static size_t next;
	struct answer *a = NULL;

	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		if (last[i].what && !strcmp(last[i].what, what) && last[i].number == number)
			a = &last[i];
	if (!a) {
		a = &last[next++ % (sizeof(last) / sizeof(last[0]))];
		*a = ask(what, number);
	}
	memcpy(name, a->name, sizeof(a->name));
	return a->found;
}

const char *gp_user_name(uid_t uid, char name[GP_ACCOUNT_NAME])
{
	(void)name_of("passwd", uid, name);
	return name;
}

bool gp_group_name(gid_t gid, char name[GP_ACCOUNT_NAME])
{
	return name_of("group", gid, name);
}

bool gp_group_find(const char *name, gid_t *ret)
{
	struct account a;

	if (!find("group", name, 0, &a))
		return false;
	*ret = a.number;
	return true;
}

const char *gp_group_advice(void)
{
	gid_t gid;

	if (gp_group_find(GP_GROUP, &gid))
		return GP_JOIN(GP_GROUP);
	return "sudo groupadd -r " GP_GROUP " && sudo usermod -aG " GP_GROUP
	       " $USER, restart gpreemptd, then log in again";
}
