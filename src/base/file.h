/* SPDX-License-Identifier: MIT */
#ifndef GP_BASE_FILE_H
#define GP_BASE_FILE_H

#include <stddef.h>

/* The beginning of a file, as text in the caller's memory; "" if there is none. */
const char *gp_file_text(const char *path, char *text, size_t size);

#endif
