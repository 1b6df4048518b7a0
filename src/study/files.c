// SPDX-License-Identifier: MIT
#include "study/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_READ (256u << 20)
#define MAX_FILES 8

static int read_all(FILE *file, char **ret_text)
{
	size_t len = 0, room = 1 << 16, got;
	char *text = NULL, *more;
	int r = -ENOMEM;

	do {
		more = realloc(text, room + 1);
		if (!more)
			goto out;
		text = more;
		got = fread(text + len, 1, room - len, file);
		len += got;
		if (len == room)
			room *= 2;
	} while (got && len <= MAX_READ);
	r = ferror(file) ? -EIO : len > MAX_READ ? -EFBIG : 0;
	if (r == 0 && memchr(text, '\0', len))
		r = -EBADMSG;
	if (r < 0)
		goto out;
	text[len] = '\0';
	*ret_text = text;
	return 0;
out:
	free(text);
	return r;
}

int gp_file_read(const char *path, char **ret_text)
{
	struct stat st;
	FILE *file;
	int r;

	file = fopen(path, "re");
	if (!file)
		return -errno;
	r = fstat(fileno(file), &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
	if (r == 0)
		r = read_all(file, ret_text);
	fclose(file);
	return r;
}

/* Where a folder's first missing part ends; 0 if all of it is there. */
static size_t first_missing(const char *dir)
{
	char part[PATH_MAX];
	struct stat st;

	for (size_t i = 1; i <= strlen(dir) && i < sizeof(part); i++) {
		if (dir[i] && dir[i] != '/')
			continue;
		memcpy(part, dir, i);
		part[i] = '\0';
		if (stat(part, &st) < 0)
			return i;
	}
	return 0;
}

static int make_dirs(const char *dir, size_t missing)
{
	char part[PATH_MAX];

	if (strlen(dir) >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = missing; i && i <= strlen(dir); i++) {
		if (dir[i] && dir[i] != '/')
			continue;
		memcpy(part, dir, i);
		part[i] = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* The folders that make_dirs() made, innermost first; one that somebody else uses by now stays. */
static void remove_dirs(const char *dir, size_t missing)
{
	char part[PATH_MAX];

	if (strlen(dir) >= sizeof(part))
		return;
	strcpy(part, dir);
	for (size_t i = strlen(dir); missing && i >= missing; i--) {
		if (dir[i] && dir[i] != '/')
			continue;
		part[i] = '\0';
		(void)rmdir(part);
	}
}

int gp_files_can_write(const char *dir)
{
	size_t missing = first_missing(dir);
	char part[PATH_MAX];
	struct stat st;

	if (!*dir)
		return -ENOENT;
	if (strlen(dir) >= sizeof(part))
		return -ENAMETOOLONG;
	strcpy(part, dir);
	if (missing) {
		while (missing && part[missing - 1] != '/')
			missing--;
		part[missing] = '\0';
	}
	if (!part[0])
		strcpy(part, ".");
	if (stat(part, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return access(part, W_OK | X_OK) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_temporary(const char *dir, const struct gp_file *file, char path[PATH_MAX])
{
	mode_t mask = umask(0);
	int fd, r;

	umask(mask);
	if (snprintf(path, PATH_MAX, "%s/.%s.XXXXXX", dir, file->name) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkstemp(path);
	if (fd < 0) {
		r = -errno;
		path[0] = '\0';
		return r;
	}
	r = write_all(fd, file->text, file->len);
	if (r == 0 && file->len && file->text[file->len - 1] != '\n')
		r = write_all(fd, "\n", 1);
	if (r == 0 && fchmod(fd, 0666 & ~mask) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

/* A rename that fails after another has succeeded would leave files of two results. */
static int check_target(const char *dir, const char *name)
{
	char target[PATH_MAX];
	struct stat st;

	if (snprintf(target, sizeof(target), "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (lstat(target, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* Nobody who names a device means to have a file in its place. */
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? 0 : -EEXIST;
}

static int put_in_place(const char *dir, const char *name, char path[PATH_MAX])
{
	char target[PATH_MAX];

	if (snprintf(target, sizeof(target), "%s/%s", dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (rename(path, target) < 0)
		return -errno;
	path[0] = '\0';
	return 0;
}

int gp_files_write(const char *dir, const struct gp_file *files, size_t n)
{
	const size_t missing = first_missing(dir);
	char(*paths)[PATH_MAX];
	int r;

	if (n > MAX_FILES)
		return -EINVAL;
	paths = calloc(MAX_FILES, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	r = make_dirs(dir, missing);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = check_target(dir, files[i].name);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_temporary(dir, &files[i], paths[i]);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = put_in_place(dir, files[i].name, paths[i]);
	for (size_t i = 0; i < n; i++)
		if (paths[i][0])
			(void)unlink(paths[i]); /* r already says why */
	if (r < 0)
		remove_dirs(dir, missing);
	free(paths);
	return r;
}

/* Splits the path, so that the file can be written beside its target first. */
int gp_file_write(const char *path, const char *text)
{
	const char *slash = strrchr(path, '/');
	struct gp_file file = { .name = slash ? slash + 1 : path, .text = text, .len = strlen(text) };
	char dir[PATH_MAX];

	if (!file.name[0])
		return -EISDIR;
	if (!slash)
		return gp_files_write(".", &file, 1);
	if ((size_t)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path) >= sizeof(dir))
		return -ENAMETOOLONG;
	return gp_files_write(dir, &file, 1);
}
