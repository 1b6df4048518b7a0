/* SPDX-License-Identifier: MIT */
/* Files that are whole or not there. */
#ifndef GP_STUDY_FILES_H
#define GP_STUDY_FILES_H

#include <stddef.h>

struct gp_file {
	const char *name; /* in the folder */
	const char *text;
	size_t len;
};

/* Whole text of a file, for the caller to free; -EBADMSG if there is a zero byte in it, -EFBIG over 256 MiB.
 */
int gp_file_read(const char *path, char **ret_text);
/* Creates the folder, and its parents, where needed; all files appear, or none. Each ends in a newline. */
int gp_files_write(const char *dir, const struct gp_file *files, size_t n);
/* The same of one, by its path. */
int gp_file_write(const char *path, const char *text);
/* 0 if gp_files_write() to dir can be expected to work; creates nothing. */
int gp_files_can_write(const char *dir);

#endif
