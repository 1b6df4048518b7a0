// SPDX-License-Identifier: MIT
#include "daemon/binder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/listen.h"
#include "base/within.h"

#define SOCKET 3
#define PROCESS 4
#define REPORT 5
#define FOLDER "run/gpreempt" /* where agents and tools look if nobody tells them */
#define NAME "gpreemptd.sock"

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = NAME };

static int send_report(const struct gp_binder_report *report)
{
	return write(REPORT, report, sizeof(*report)) == (ssize_t)sizeof(*report) ? 0 : 1;
}

static int say(int status, const char *text)
{
	struct gp_binder_report report = { .status = status };

	snprintf(report.text, sizeof(report.text), "%s", text);
	return send_report(&report);
}

static int say_bound(const struct gp_within *within)
{
	return send_report(&(struct gp_binder_report){ .root = { within->id[0], within->id[1] } });
}

static int say_errno(int status, const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "%s: %s%s", what, strerror(-status),
		 status == -ENOTDIR ? " (symbolic links are not followed)" : "");
	return say(status, text);
}

/* Of what has our name there; 0: nobody listens on it. */
static int look_who_listens(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0                                                      ? -errno
		: connect(fd, (const void *)&address, sizeof(address)) == 0 ? -EADDRINUSE
									    : -errno;

	if (fd >= 0)
		close(fd);
	return r == -ECONNREFUSED ? 0 : r == -EAGAIN ? -EADDRINUSE : r;
}

/* A socket that the last gpreemptd left. */
static int remove_stale(void)
{
	struct stat st;
	int r;

	if (lstat(NAME, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	r = look_who_listens();
	return r < 0 ? r : unlink(NAME) < 0 ? -errno : 0;
}

/* For everybody in there: who comes is asked of the kernel. By its umask: no path is followed. */
static int bind_here(void)
{
	(void)umask(0111);
	if (bind(SOCKET, (const void *)&address, sizeof(address)) < 0 ||
	    listen(SOCKET, GP_LISTEN_BACKLOG) < 0)
		return -errno;
	return 0;
}

static int bind_in(const struct gp_within *within, int folder)
{
	int r;

	if (fchdir(folder) < 0)
		return say_errno(-errno, "cannot go to /" FOLDER " in it");
	r = remove_stale();
	if (r == -EADDRINUSE)
		return say(r,
			   "a gpreemptd listens in it already: another of its processes was attached, or a "
			   "class was mounted");
	if (r == 0)
		r = bind_here();
	return r < 0 ? say_errno(r, "cannot listen on /" FOLDER "/" NAME " in it") : say_bound(within);
}

static int enter_and_bind(uint32_t pid)
{
	const struct gp_process process = gp_process_of(PROCESS, pid);
	struct gp_within within;
	int folder, r = gp_within_open(pid, &within);

	if (r == -EXDEV)
		return say(r, "it is in no container: its root folder is this machine's");
	if (!gp_process_lives(&process))
		return say(-ESRCH, "it has ended");
	if (r == 0)
		r = gp_within_enter(&within);
	if (r < 0)
		return say_errno(r, "cannot enter its root folder");
	(void)umask(022);
	folder = gp_within_folder(within.root, FOLDER);
	return folder < 0 ? say_errno(folder, "cannot make /" FOLDER " in it") : bind_in(&within, folder);
}

/* Nothing else runs at its end: what that looks for would be the container's. */
int gp_binder_main(uint32_t pid)
{
	_exit(enter_and_bind(pid));
}

/* In the child: nothing but system calls. Numbers above all three: none is in another's way. */
static void become(const int fds[3], char *const *args)
{
	static const int numbers[] = { SOCKET, PROCESS, REPORT };
	int above[3];
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGALRM, SIG_DFL); /* who started us may have had it ignored */
	(void)alarm(GP_BINDER_S);
	for (int i = 0; i < 3; i++)
		above[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, REPORT + 1);
	for (int i = 0; i < 3; i++)
		if (above[i] < 0 || dup2(above[i], numbers[i]) < 0)
			_exit(127);
	execv("/proc/self/exe", args);
	_exit(127);
}

int gp_binder_start(const struct gp_process *process, int socket, int *ret_report)
{
	char pid[16];
	const char *const args[] = { "gpreemptd", "--attach", pid, NULL };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	snprintf(pid, sizeof(pid), "%u", process->pid);
	child = fork();
	if (child == 0)
		become((const int[]){ socket, process->fd, ends[1] }, (char *const *)args);
	close(ends[1]);
	if (child > 0) {
		*ret_report = ends[0];
		return 0;
	}
	close(ends[0]);
	return -EAGAIN;
}
