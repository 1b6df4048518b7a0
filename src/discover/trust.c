// SPDX-License-Identifier: MIT
#include "discover/trust.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "discover/scan.h"

#define CAP_SYS_ADMIN_BIT 21
#define STATUS_SIZE \
	16384 /* with more than a thousand groups the rest is not read, and nobody is trusted for it */

/* The numbers of a line; how many there are, at most n of them in ret. */
static size_t read_numbers(struct gp_span line, uint32_t *ret, size_t n)
{
	size_t count = 0;
	uint32_t one;

	gp_span_trim(&line);
	while (gp_span_u32(&line, &one)) {
		if (count < n)
			ret[count] = one;
		count++;
		gp_span_trim(&line);
	}
	return count;
}

/* Real, effective, saved and of the file system: all are this one. */
static int is_user(const char *text, size_t len, uint32_t uid)
{
	struct gp_span line;
	uint32_t ids[4];

	if (!gp_status_line(text, len, "Uid:", &line) || read_numbers(line, ids, 4) != 4)
		return 0;
	return ids[0] == uid && ids[1] == uid && ids[2] == uid && ids[3] == uid;
}

static int is_administrator(const char *text, size_t len)
{
	struct gp_span line;
	uint64_t caps;

	if (!gp_status_line(text, len, "CapEff:", &line))
		return 0;
	gp_span_trim(&line);
	return gp_span_hex(&line, &caps) && caps >> CAP_SYS_ADMIN_BIT & 1;
}

static int is_member(const char *text, size_t len, int64_t group)
{
	struct gp_span line;
	uint32_t ids[4], one;

	if (gp_status_line(text, len, "Gid:", &line) && read_numbers(line, ids, 4) == 4 && ids[1] == group)
		return 1;
	if (!gp_status_line(text, len, "Groups:", &line))
		return 0;
	for (gp_span_trim(&line); gp_span_u32(&line, &one); gp_span_trim(&line))
		if (one == group)
			return 1;
	return 0;
}

int gp_status_trusted(const char *text, size_t len, int64_t group, uint32_t daemon_uid)
{
	while (len && text[len - 1] != '\n')
		len--; /* half a number is another number */
	return (is_user(text, len, 0) && is_administrator(text, len)) ||
	       (daemon_uid && is_user(text, len, daemon_uid)) || (group >= 0 && is_member(text, len, group));
}

int gp_process_trusted(const char *root, uint32_t pid, int64_t group, uint32_t daemon_uid)
{
	char path[64], text[STATUS_SIZE];
	int n, dir = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "proc/%u/status", pid);
	n = gp_read_at(dir, path, text, sizeof(text));
	close(dir);
	return n > 0 && gp_status_trusted(text, (size_t)n, group, daemon_uid);
}
