// SPDX-License-Identifier: MIT
#include "daemon/kept.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"

#define PATH 128

static const char *path_of(const struct gp_conf *conf, const char *name, const char *suffix, char path[PATH])
{
	snprintf(path, PATH, "%s.%s%s", conf->socket, name, suffix);
	return path;
}

void gp_kept_write(const struct gp_conf *conf, const char *name, const char *text, size_t size)
{
	char fresh[PATH], path[PATH];
	bool is_written;
	int fd;

	(void)unlink(path_of(conf, name, ".new", fresh));
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	is_written = fd >= 0 && write(fd, text, size) == (ssize_t)size;
	if (fd >= 0)
		close(fd);
	if (is_written && rename(fresh, path_of(conf, name, "", path)) == 0)
		return;
	gp_log("cannot write %s: the next gpreemptd will not know what is %s", fresh, name);
	(void)unlink(fresh);
	(void)unlink(path_of(conf, name, "", path));
}

void gp_kept_read(const struct gp_conf *conf, const char *name, char *text, size_t size)
{
	char path[PATH];
	int fd = open(path_of(conf, name, "", path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		n = read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}
