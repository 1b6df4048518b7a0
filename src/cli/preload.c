// SPDX-License-Identifier: MIT
#include "cli/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/near.h"

#define HEAD 256     /* of a file: more of a #! line no kernel reads */
#define MOST_CHAIN 5 /* interpreters that are scripts: the kernel follows no more */
#define USUAL_PATH "/bin:/usr/bin"

/* The agent's file */

/* In the build's folder, or where the libraries of an installation that was moved are. */
static bool find_near(char path[PATH_MAX])
{
	static const char *const places[] = { GP_AGENT_NAME, "../lib/" GP_AGENT_NAME,
					      "../lib64/" GP_AGENT_NAME,
					      "../lib/x86_64-linux-gnu/" GP_AGENT_NAME };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (gp_near_find(places[i], path) && access(path, R_OK) == 0)
			return true;
	return false;
}

bool gp_agent_preloaded(char path[PATH_MAX])
{
	const char *at = getenv("LD_PRELOAD");
	size_t len;

	for (; at && *at; at += len + strspn(at + len, ": ")) {
		const char *name;

		len = strcspn(at, ": ");
		snprintf(path, PATH_MAX, "%.*s", (int)len, at);
		name = strrchr(path, '/');
		if (name && !strcmp(name + 1, GP_AGENT_NAME) && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* What is in LD_PRELOAD already, as in a container with a class, is as good as our own, and two are one too
 * many. */
bool gp_agent_find(char path[PATH_MAX])
{
	const char *named = getenv("GPREEMPT_AGENT");

	if (named && *named) {
		if (realpath(named, path))
			return access(path, R_OK) == 0;
		snprintf(path, PATH_MAX, "%s", named);
		return false;
	}
	if (gp_agent_preloaded(path) || find_near(path))
		return true;
	snprintf(path, PATH_MAX, "%s/" GP_AGENT_NAME, GPREEMPT_LIBDIR);
	if (access(path, R_OK) < 0 && access(GP_AGENT_INSIDE, R_OK) == 0)
		strcpy(path, GP_AGENT_INSIDE);
	return access(path, R_OK) == 0;
}

/* The file that a command is */

static int check_file(const char *path)
{
	struct stat s;

	if (stat(path, &s) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	if (S_ISDIR(s.st_mode))
		return -EISDIR;
	if (!S_ISREG(s.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return -EACCES;
	return 0;
}

int gp_command_find(const char *command, char path[PATH_MAX])
{
	const char *folder = getenv("PATH");
	int one, r = -ENOENT;

	if (!*command)
		return -ENOENT;
	if (strchr(command, '/')) {
		snprintf(path, PATH_MAX, "%s", command);
		return check_file(path);
	}
	if (!folder)
		folder = USUAL_PATH;
	for (;;) {
		size_t len = strcspn(folder, ":");

		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, folder, len ? "/" : "./", command) <
		    PATH_MAX) {
			one = check_file(path);
			if (one == 0)
				return 0;
			r = one == -ENOENT || r == -EACCES ? r : one;
		}
		if (!folder[len])
			return r;
		folder += len + 1;
	}
}

/* Scripts */

static size_t read_head(const char *path, char head[HEAD + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : pread(fd, head, HEAD, 0);

	if (fd >= 0)
		close(fd);
	n = n < 0 ? 0 : n;
	head[n] = '\0';
	return (size_t)n;
}

/* The next word of a line, ended where it ends; NULL: there is none. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");

	if (!*word)
		return NULL;
	*line = word + strcspn(word, " \t");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/* What env starts, with or without -S. */
static const char *word_of_env(char *line)
{
	char *word;

	while ((word = next_word(&line))) {
		if (!strncmp(word, "-S", 2) && word[2])
			return word + 2;
		if (word[0] != '-' && !strchr(word, '='))
			return word;
	}
	return NULL;
}

/* Of a #! line; false: it has none that is to be found. */
static bool find_interpreter(char *head, char path[PATH_MAX])
{
	char *line = head + 2, *word;
	const char *slash, *started;

	line[strcspn(line, "\n")] = '\0';
	word = next_word(&line);
	if (!word)
		return false;
	slash = strrchr(word, '/');
	started = slash && !strcmp(slash, "/env") ? word_of_env(line) : NULL;
	return gp_command_find(started ? started : word, path) == 0;
}

/* Programs */

/* A kernel that gives a program more rights than its caller has makes its loader deaf to LD_PRELOAD. */
static const char *find_more_rights(const char *path)
{
	struct statvfs mount;
	struct stat s;

	if (stat(path, &s) < 0 || statvfs(path, &mount) < 0 || mount.f_flag & ST_NOSUID ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return NULL;
	if (s.st_mode & S_ISUID && s.st_uid != getuid())
		return "is setuid";
	if ((s.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && s.st_gid != getgid())
		return "is setgid";
	if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
		return "has file capabilities";
	return NULL;
}

static bool is_elf(const char *head, size_t size)
{
	return size >= sizeof(ElfW(Ehdr)) && !memcmp(head, ELFMAG, SELFMAG);
}

static bool is_same_machine(const ElfW(Ehdr) * a, const ElfW(Ehdr) * b)
{
	return a->e_ident[EI_CLASS] == b->e_ident[EI_CLASS] && a->e_ident[EI_DATA] == b->e_ident[EI_DATA] &&
	       a->e_machine == b->e_machine;
}

/* Empty: it asks for none. */
static void read_loader(const char *path, const ElfW(Ehdr) * header, char *loader, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ElfW(Phdr) part;
	ssize_t n = 0;

	for (unsigned int i = 0; fd >= 0 && i < header->e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), (off_t)(header->e_phoff + i * sizeof(part))) !=
		    (ssize_t)sizeof(part))
			break;
		if (part.p_type == PT_INTERP)
			n = pread(fd, loader, size - 1, (off_t)part.p_offset);
	}
	loader[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		close(fd);
}

bool gp_is_library(const char *path)
{
	_Alignas(ElfW(Ehdr)) char head[HEAD + 1];
	const ElfW(Ehdr) *header = (const void *)head;
	char loader[64];

	if (!is_elf(head, read_head(path, head)) || header->e_type != ET_DYN)
		return false;
	read_loader(path, header, loader, sizeof(loader));
	return !loader[0]; /* else it is a program */
}

static void look_at_program(const char *agent, const char *head, struct gp_obstacle *ret)
{
	const ElfW(Ehdr) *header = (const void *)head;
	_Alignas(ElfW(Ehdr)) char ours[HEAD + 1];
	char loader[64];

	if (is_elf(ours, read_head(agent, ours)) && !is_same_machine(header, (const void *)ours)) {
		ret->what = "is of another architecture";
		ret->is_foreign = true;
		return;
	}
	read_loader(ret->program, header, loader, sizeof(loader));
	if (!loader[0]) {
		ret->what = "is statically linked";
	} else if (strstr(loader, "/ld-musl")) {
		ret->what = "uses another C library than the agent";
		ret->is_foreign = true;
	} else {
		ret->what = find_more_rights(ret->program);
	}
}

void gp_obstacle_find(const char *path, const char *agent, struct gp_obstacle *ret)
{
	_Alignas(ElfW(Ehdr)) char head[HEAD + 1];
	size_t size;

	snprintf(ret->program, sizeof(ret->program), "%s", path);
	ret->what = NULL;
	ret->is_foreign = false;
	for (int i = 0; i < MOST_CHAIN; i++) {
		size = read_head(ret->program, head);
		if (is_elf(head, size)) {
			look_at_program(agent, head, ret);
			return;
		}
		if (strncmp(head, "#!", 2) != 0 || !find_interpreter(head, ret->program))
			return;
	}
}
