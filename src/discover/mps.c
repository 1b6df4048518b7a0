// SPDX-License-Identifier: MIT
/* NVIDIA's Multi-Process Service: its programs share the server's channel groups. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discover/scan.h"

#define SERVER "nvidia-cuda-mps-server"
#define VARIABLE "CUDA_MPS_PIPE_DIRECTORY="
#define MOST_ENVIRONMENT (128 * 1024) /* of what is looked at */

static int is_server(int process)
{
	char line[4096] = "";
	const char *slash;

	(void)gp_read_at(process, "cmdline", line, sizeof(line));
	slash = strrchr(line, '/'); /* of the first word: each ends with a zero */
	return !strcmp(slash ? slash + 1 : line, SERVER);
}

/* The variable's value, or where it is without one. */
static const char *find_folder(const char *text, const char *end)
{
	for (; text < end; text += strlen(text) + 1)
		if (!strncmp(text, VARIABLE, strlen(VARIABLE)) && text[strlen(VARIABLE)])
			return text + strlen(VARIABLE);
	return GP_MPS_FOLDER;
}

/* Whether the control program is where the process would look for it, in its own root folder. */
static int is_client(int process)
{
	char *text = malloc(MOST_ENVIRONMENT), path[4096];
	int n = text ? gp_read_at(process, "environ", text, MOST_ENVIRONMENT) : -1, fits = 0;

	if (n >= 0)
		fits = snprintf(path, sizeof(path), "root/%s/control", find_folder(text, text + n)) <
		       (int)sizeof(path);
	free(text);
	return fits && faccessat(process, path, F_OK, 0) == 0;
}

uint32_t gp_mps_server(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uint32_t found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);
		int process = pid ? gp_open_at(dirfd(dir), entry->d_name, O_DIRECTORY) : -1;

		if (process >= 0 && is_server(process))
			found = (uint32_t)pid;
		if (process >= 0)
			close(process);
	}
	if (dir)
		closedir(dir);
	return found;
}

const char *gp_mps_role(uint32_t pid)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int process = root < 0 || !gp_sees_host_pids() ? -1 : gp_proc_open(root, pid);
	const char *role = "";

	if (process >= 0)
		role = is_server(process) ? "server" : is_client(process) ? "client" : "";
	if (process >= 0)
		close(process);
	if (root >= 0)
		close(root);
	return role;
}
