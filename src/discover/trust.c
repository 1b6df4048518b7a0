// SPDX-License-Identifier: MIT
#include "discover/trust.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define CAP_SYS_ADMIN_BIT 21
/* With more than a thousand groups the rest is not read, and nobody is trusted for it. */
#define STATUS_SIZE 16384

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

/* Half a number is another number. */
static size_t whole_lines(const char *text, size_t len)
{
	while (len && text[len - 1] != '\n')
		len--;
	return len;
}

/* Real, effective, saved and of the file system. */
uint32_t gp_status_user(const char *text, size_t len)
{
	struct gp_span line;
	uint32_t ids[4];

	if (!gp_status_line(text, whole_lines(text, len), "Uid:", &line) || read_numbers(line, ids, 4) != 4)
		return UINT32_MAX;
	return ids[0] == ids[1] && ids[0] == ids[2] && ids[0] == ids[3] ? ids[0] : UINT32_MAX;
}

uint32_t gp_status_inner_pid(const char *text, size_t len)
{
	uint32_t pids[GP_PID_LEVELS];
	uint32_t count = gp_status_pids(text, whole_lines(text, len), pids, GP_PID_LEVELS);

	return count ? pids[count - 1] : 0;
}

int gp_status_is_administrator(const char *text, size_t len)
{
	struct gp_span line;
	uint64_t caps;

	if (!gp_status_line(text, whole_lines(text, len), "CapEff:", &line))
		return 0;
	gp_span_trim(&line);
	return gp_span_hex(&line, &caps) && caps >> CAP_SYS_ADMIN_BIT & 1;
}

int gp_status_is_member(const char *text, size_t len, int64_t group)
{
	struct gp_span line;
	uint32_t ids[4], one;

	len = whole_lines(text, len);
	if (group < 0)
		return 0;
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
	uint32_t uid = gp_status_user(text, len);

	return (uid == 0 && gp_status_is_administrator(text, len)) || (daemon_uid && uid == daemon_uid) ||
	       gp_status_is_member(text, len, group);
}

/* Whether it is in another one than we; of one that cannot be seen nothing is known. */
static int is_elsewhere(int process, const char *name)
{
	char theirs[64] = "", ours[64] = "", path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/%s", name);
	if (readlinkat(process, name, theirs, sizeof(theirs) - 1) <= 0 ||
	    readlink(path, ours, sizeof(ours) - 1) <= 0)
		return 0;
	return strcmp(theirs, ours) != 0;
}

int gp_proc_trusted(const char *root, uint32_t pid, int64_t group, uint32_t daemon_uid)
{
	char text[STATUS_SIZE];
	int n, process, dir = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return 0;
	process = gp_proc_open(dir, pid);
	close(dir);
	if (process < 0)
		return 0;
	n = gp_read_at(process, "status", text, sizeof(text));
	if (n > 0 && (is_elsewhere(process, "ns/user") || is_elsewhere(process, "ns/pid")))
		n = 0;
	close(process);
	return n > 0 && gp_status_trusted(text, (size_t)n, group, daemon_uid);
}
