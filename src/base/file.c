// SPDX-License-Identifier: MIT
#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

const char *gp_file_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}
