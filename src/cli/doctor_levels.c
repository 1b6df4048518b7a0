// SPDX-License-Identifier: MIT
/* Whether the doors for levels open: a program of the runtime is started with libgpreempt-level.so, which
 * says so. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/preload.h"

#define LIBRARY "libgpreempt-level.so"
#define PATIENCE_MS 60000 /* a runtime is loaded, perhaps from a cold disk */
#define REST_MS 2000      /* for what is left to do when it has said all, and when it was killed */
#define STEP_MS 10

/* Beside the agent. */
static bool find_library(char path[PATH_MAX])
{
	char *slash;

	(void)gp_agent_find(path); /* or where it should have been */
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + sizeof(LIBRARY) + 1 > PATH_MAX)
		return false;
	strcpy(slash + 1, LIBRARY);
	return access(path, R_OK) == 0;
}

/* A program that a runtime's door is tried with. */
struct visitor {
	const char *name;
	const char *const *variables; /* each is set to the library's path */
	const char *runtime;          /* that the library shall start itself; NULL: the program does */
};

static void visit(const struct visitor *v, const char *library, int report)
{
	char number[16];
	int nothing = open("/dev/null", O_RDWR);

	snprintf(number, sizeof(number), "%d", report);
	for (const char *const *variable = v->variables; *variable; variable++)
		setenv(*variable, library, 1);
	if (v->runtime)
		setenv("GPREEMPT_LEVEL_TRY", v->runtime, 1);
	setenv("GPREEMPT_LEVEL_REPORT", number, 1);
	if (nothing >= 0) {
		dup2(nothing, STDIN_FILENO);
		dup2(nothing, STDOUT_FILENO);
		dup2(nothing, STDERR_FILENO);
	}
	execlp(v->name, v->name, (char *)NULL);
	_exit(127);
}

/* Whether it has ended, in time. */
static bool await(pid_t child, int *status)
{
	for (int waited = 0; waited < REST_MS; waited += STEP_MS) {
		if (waitpid(child, status, WNOHANG) != 0)
			return true;
		(void)poll(NULL, 0, STEP_MS);
	}
	return false;
}

/* What it says; its exit status, or -1: it did not end by itself. */
static int ask(const struct visitor *v, const char *library, char *said, size_t size)
{
	struct pollfd in;
	int ends[2], status = -1;
	ssize_t n = 0;
	pid_t child;

	*said = '\0';
	if (pipe(ends) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		visit(v, library, ends[1]);
	}
	close(ends[1]);
	in = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	if (child > 0 && poll(&in, 1, PATIENCE_MS) > 0)
		n = read(ends[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	said[strcspn(said, "\n")] = '\0';
	close(ends[0]);
	if (child < 0)
		return -1;
	if (!await(child, &status)) {
		kill(child, SIGKILL);
		(void)await(child, &status); /* one that the driver does not let die outlives us */
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *after(const char *text, const char *word)
{
	size_t n = strlen(word);

	return strncmp(text, word, n) ? NULL : text + n;
}

void gp_doctor_levels(struct gp_findings *f)
{
	static const char *const variables[] = { "HSA_TOOLS_LIB", NULL };
	static const struct visitor rocminfo = { .name = "rocminfo", .variables = variables };
	char library[PATH_MAX], said[320];
	int status;

	if (!find_library(library)) {
		gp_finding_add(f, "levels", "no", "%s is not there: throttle and gate need it", library);
		return;
	}
	status = ask(&rocminfo, library, said, sizeof(said));
	if (after(said, "rocr: open"))
		gp_finding_add(f, "levels", "yes", "throttle and gate in programs of ROCm: HSA_TOOLS_LIB=%s",
			       library);
	else if (after(said, "rocr: shut: "))
		gp_finding_add(f, "levels", "no", "no throttle and gate in programs of ROCm: %s",
			       after(said, "rocr: shut: "));
	else
		gp_finding_add(f, "levels", "?",
			       status == 127 ? "no rocminfo here to try throttle and gate with"
					     : "rocminfo did not load the library for throttle and gate");
}

/* Any program will do: the library calls cuInit() itself. */
void gp_doctor_cuda(struct gp_findings *f)
{
	static const char *const variables[] = { "LD_PRELOAD", "CUDA_INJECTION64_PATH", NULL };
	static const struct visitor any = { .name = "true",
					    .variables = variables,
					    .runtime = "libcuda.so.1" };
	char library[PATH_MAX], said[320];

	if (!find_library(library)) {
		gp_finding_add(f, "CUDA levels", "no", "%s is not there: throttle and gate need it", library);
		return;
	}
	(void)ask(&any, library, said, sizeof(said));
	if (after(said, "cuda: open"))
		gp_finding_add(f, "CUDA levels", "yes",
			       "throttle and gate in programs of CUDA: CUDA_INJECTION64_PATH=%s", library);
	else if (after(said, "cuda: shut: "))
		gp_finding_add(f, "CUDA levels", "no", "no throttle and gate in programs of CUDA: %s",
			       after(said, "cuda: shut: "));
	else
		gp_finding_add(f, "CUDA levels", "?", "CUDA was not started to try throttle and gate with");
}
