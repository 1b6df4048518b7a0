// SPDX-License-Identifier: MIT
#include "cli/scontrol.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int spawn(const char *const *argv, int out, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	int r = posix_spawn_file_actions_init(&files);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawnp(ret, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

/* All of it, or the program would wait for us; the first of it is kept. */
static void take(int fd, char *out, size_t size)
{
	size_t used = 0;
	char rest[512];
	ssize_t n;

	while ((n = read(fd, rest, sizeof(rest))) > 0 || (n < 0 && errno == EINTR))
		for (ssize_t i = 0; i < n && used < size - 1; i++)
			out[used++] = rest[i];
	while (used && out[used - 1] == '\n')
		used--;
	out[used] = '\0';
}

int gp_scontrol(const char *const *argv, char *out, size_t size)
{
	int ends[2], status = 0, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	r = spawn(argv, ends[1], &pid);
	close(ends[1]);
	if (r == 0) {
		take(ends[0], out, size);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

const char *gp_node_name(char name[GP_SLURM_NODE])
{
	const char *said = getenv("SLURMD_NODENAME");

	if (said && *said) {
		snprintf(name, GP_SLURM_NODE, "%s", said);
		return name;
	}
	return gp_slurm_node(name);
}
