// SPDX-License-Identifier: MIT
/* bed: timeout=180 memory=3G param=cus=8 */
/*
 * Whose queues a scheduling session may stop, with real users, capabilities and namespaces: what its
 * creator might do when it made the session, and never more.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define NOBODY 65534
#define NO_SUCH_PID 4000000
#define SECOND DBG_SECOND
#define DRM_MAJOR 226

static struct kfd kfd;
static int session; /* root's */
static struct dbg_peer peer;

static int become_nobody(void)
{
	return setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0
		       ? -errno
		       : 0;
}

static int become_nice_nobody(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_SYS_NICE,
						    .permitted = 1u << CAP_SYS_NICE } };
	int r = prctl(PR_SET_KEEPCAPS, 1) < 0 ? -errno : become_nobody();

	return r < 0 || syscall(SYS_capset, &header, data) == 0 ? r : -errno;
}

/* A process with a queue, and a session of its own. */
static int begin(struct dbg_client *c)
{
	int r = dbg_client_open(c);

	if (r == 0)
		r = dbg_client_add(c, 1);
	return r < 0 ? r : session_open(&c->kfd, 0);
}

/* Stops a process and lets it run: whether both had that status. */
static int both_are(int fd, pid_t pid, int status)
{
	int stop = session_all(fd, pid, KFD_SESSION_STOP), run = session_all(fd, pid, KFD_SESSION_RUN);

	if (stop != status || run != status)
		note("%d: stop %d, run %d", pid, stop, run);
	return stop == status && run == status;
}

static void without_rights(void)
{
	struct dbg_client c;
	int fd, r = become_nobody();

	fd = begin(&c);
	if (!ok(r == 0 && fd >= 0, "a user has a queue and a session (%d, %d)", r, fd))
		return;
	ok(session_rights(&c.kfd) == 0, "which has no right to others");
	ok(both_are(fd, 0, KFD_SESSION_DONE) && both_are(fd, getpid(), KFD_SESSION_DONE),
	   "he may stop his own process, by 0 and by its pid");
	ok(both_are(fd, peer.pid, KFD_SESSION_DENIED) && both_are(fd, getppid(), KFD_SESSION_DENIED),
	   "not another one's, with queues or without");
	ok(both_are(fd, NO_SUCH_PID, KFD_SESSION_DENIED) && both_are(fd, INT32_MAX, KFD_SESSION_DENIED),
	   "and is told the same of one that is not there");
	ok(session_state(fd, peer.pid, 0) == 0 && session_state(fd, 0, c.queues[0].id) == KFD_SESSION_ACTIVE,
	   "nor may he look at it");
}

static void with_the_capability_alone(void)
{
	struct dbg_client c;
	int fd, r = become_nice_nobody();

	fd = begin(&c);
	ok(r == 0 && fd >= 0 && both_are(fd, peer.pid, KFD_SESSION_DONE),
	   "a user with CAP_SYS_NICE and no other right may stop another process");
	ok(both_are(fd, NO_SUCH_PID, KFD_SESSION_NOT_FOUND), "and is told that one is not there");
	ok(session_rights(&c.kfd) == KFD_SESSION_RIGHT_ALL, "and what right it has");
}

static void rights_stay(void)
{
	struct dbg_client c;
	int fd = begin(&c), r = become_nobody();

	ok(r == 0 && both_are(fd, peer.pid, KFD_SESSION_DONE), "a session keeps what its creator gave up");
	close(fd);
	fd = session_open(&c.kfd, 0);
	ok(fd >= 0 && both_are(fd, peer.pid, KFD_SESSION_DENIED), "the next one has less");
	ok(both_are(session, peer.pid, KFD_SESSION_DONE), "one that root had before the fork has all");
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), r = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	close(fd);
	return r;
}

/* A user who makes these namespaces, and is root in his own, as rootless containers are. */
static int become_root_inside(int namespaces)
{
	char map[32];
	int r = become_nobody();

	if (r < 0)
		return r;
	prctl(PR_SET_DUMPABLE, 1); /* its files in /proc are its own again */
	if (unshare(CLONE_NEWUSER | namespaces) < 0)
		return -errno;
	snprintf(map, sizeof(map), "0 %d 1", NOBODY);
	r = write_file("/proc/self/uid_map", map);
	return r == 0 && setresuid(0, 0, 0) < 0 ? -errno : r;
}

/* Its own queues are all that the session of a namespace's root may stop. */
static int has_no_rights(int fd, struct kfd *k, pid_t self)
{
	return session_rights(k) == 0 && both_are(fd, 0, KFD_SESSION_DONE) &&
	       session_class(fd, self, KFD_SESSION_CLASS_ONLINE) == -EPERM &&
	       session_reserve(fd, k->gpus[0].gpu_id, 50, 50, 0, NULL) == -EPERM;
}

static void root_of_a_namespace(void)
{
	struct dbg_client c;
	int fd, r = become_root_inside(0);

	fd = begin(&c);
	ok(r == 0 && getuid() == 0 && fd >= 0 && has_no_rights(fd, &c.kfd, getpid()) &&
		   both_are(fd, peer.pid, KFD_SESSION_DENIED),
	   "root of a user namespace is nobody out here (%d, %d)", r, fd);
}

static void first_of_the_container(void)
{
	struct dbg_client c;
	int fd = begin(&c);

	ok(getpid() == 1 && getuid() == 0 && fd >= 0 && has_no_rights(fd, &c.kfd, 1) &&
		   both_are(fd, 1, KFD_SESSION_DONE),
	   "root of a user and a pid namespace is 1 there, and has its own queues alone (%d)", fd);
	ok(both_are(fd, peer.pid, KFD_SESSION_DENIED) && both_are(fd, 2, KFD_SESSION_DENIED),
	   "nobody's who is outside, nor one's who is not there");
	ok(both_are(session, 1, KFD_SESSION_DONE), "root's session from outside may stop it");
}

static void user_and_pid_namespace(void)
{
	int r = become_root_inside(CLONE_NEWPID);

	ok(r == 0, "a user makes a user and a pid namespace (%d)", r);
	tap_in_child(first_of_the_container);
}

static void in_the_namespace(void)
{
	struct dbg_client c;
	int fd = begin(&c);

	ok(getpid() == 1 && fd >= 0 && both_are(fd, 1, KFD_SESSION_DONE) &&
		   session_state(fd, 0, c.queues[0].id) == KFD_SESSION_ACTIVE,
	   "in a pid namespace, 1 is the first process there");
	ok(both_are(session, 1, KFD_SESSION_DONE), "for a session from outside as well");
	ok(both_are(fd, peer.pid, KFD_SESSION_NOT_FOUND), "and who is outside is not found");
}

static void pid_namespace(void)
{
	ok(unshare(CLONE_NEWPID) == 0, "a pid namespace");
	tap_in_child(in_the_namespace);
}

/* A device cgroup without that render node; the first version, whose rules are no programs. */
static int forbid_the_device(void)
{
	char own[16];
	int r;

	if (mkdir("cg", 0755) < 0 || mount("none", "cg", "cgroup", 0, "devices") < 0 ||
	    mkdir("cg/deny", 0755) < 0)
		return -errno;
	r = write_file("cg/deny/devices.deny", "a");
	snprintf(own, sizeof(own), "%d", getpid());
	return r < 0 ? r : write_file("cg/deny/cgroup.procs", own);
}

static void device_cgroup(void)
{
	struct kfd_session_queue queue = session_queue(peer.pid, KFD_SESSION_ALL_QUEUES, KFD_SESSION_STOP);
	int r = forbid_the_device();
	char line[64];

	queue.gpu_id = kfd.gpus[0].gpu_id;
	ok(r == 0 && session_set(session, &queue, 1, NULL) == 0 && queue.status == KFD_SESSION_DENIED,
	   "who may not use a GPU may not stop queues there (%d)", r);
	ok(session_all(session, peer.pid, KFD_SESSION_STOP) != KFD_SESSION_DONE &&
		   session_state(session, peer.pid, 0) == 0,
	   "nor look at them");
	snprintf(line, sizeof(line), "process %d class none\n", peer.pid);
	ok(session_class(session, peer.pid, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   session_file_says("/sys/kernel/debug/kfd/sched", line) &&
		   session_class(session, peer.pid, KFD_SESSION_CLASS_NONE) == 0,
	   "nor say what a process is there");
}

/* The other end of a user's process that gives its session away. */
struct giver {
	pid_t pid;
	int socket, session;
};

static char byte_of(int fd)
{
	char byte = 0;

	return read(fd, &byte, 1) == 1 ? byte : 0;
}

static void give(int socket, const char *then)
{
	struct dbg_client c;
	char fd_text[16];
	int fd;

	if (become_nobody() < 0)
		_exit(1);
	fd = begin(&c);
	kfd_send_file(socket, fd);
	byte_of(socket);
	snprintf(fd_text, sizeof(fd_text), "%d", socket);
	if (!strcmp(then, "exec"))
		execl("/proc/self/exe", "session_rights", fd_text, NULL);
	while (1)
		pause();
}

static int start_giver(struct giver *g, const char *then)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return -errno;
	g->pid = fork();
	if (g->pid == 0)
		give(sockets[1], then);
	close(sockets[1]);
	g->socket = sockets[0];
	g->session = kfd_receive_file(g->socket);
	return g->session < 0 ? -EBADF : 0;
}

static void end_giver(struct giver *g)
{
	kill(g->pid, SIGKILL);
	waitpid(g->pid, NULL, 0);
	close(g->socket);
	close(g->session);
}

static void handed_over(void)
{
	struct giver g;

	if (!ok(start_giver(&g, "pause") == 0, "a user hands his session to root"))
		return;
	ok(both_are(g.session, 0, KFD_SESSION_DONE) && both_are(g.session, g.pid, KFD_SESSION_DONE),
	   "it is for the user's process");
	ok(both_are(g.session, peer.pid, KFD_SESSION_DENIED) &&
		   both_are(g.session, getpid(), KFD_SESSION_DENIED),
	   "and not for more than that, whoever holds it");
	session_all(g.session, 0, KFD_SESSION_STOP);
	kill(g.pid, SIGKILL);
	waitpid(g.pid, NULL, 0);
	ok(both_are(g.session, 0, KFD_SESSION_NOT_FOUND), "nor for another when that has ended");
	close(g.socket);
	close(g.session);
}

/* After exec the process has other queues, and may be another user's: this one asks for nothing more. */
static int become_another(int socket)
{
	struct dbg_client c;
	int fd = begin(&c);

	if (fd < 0 || write(socket, "x", 1) != 1)
		return 1;
	while (1)
		pause();
}

static void handed_over_before_exec(void)
{
	struct giver g;

	if (!ok(start_giver(&g, "exec") == 0, "a user hands his session to another"))
		return;
	ok(session_all(session, g.pid, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   write(g.socket, "x", 1) == 1 && byte_of(g.socket) == 'x',
	   "is stopped, and becomes another program");
	ok(session_state(session, g.pid, 0) == KFD_SESSION_ACTIVE, "which is not stopped");
	ok(both_are(g.session, 0, KFD_SESSION_DENIED) && both_are(g.session, g.pid, KFD_SESSION_DENIED),
	   "whose queues the session may not stop");
	ok(both_are(session, g.pid, KFD_SESSION_DONE), "root's may");
	end_giver(&g);
}

static void other_users(void)
{
	struct giver g;

	if (!ok(start_giver(&g, "pause") == 0, "a process of a user"))
		return;
	ok(both_are(session, g.pid, KFD_SESSION_DONE), "that was root's before: root's session may stop it");
	end_giver(&g);
}

/* A process that has stopped all of its own queues, those to come as well, and lets one run. */
static void own_session_against_root_s(void)
{
	struct giver g;

	if (!ok(start_giver(&g, "pause") == 0, "a process has a session"))
		return;
	ok(session_all(g.session, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_all(session, g.pid, KFD_SESSION_STOP) == KFD_SESSION_DONE,
	   "that it has stopped its queues itself does not keep root out");
	ok(session_all(g.session, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   session_state(session, g.pid, 0) == (KFD_SESSION_STOPPED | KFD_SESSION_OWN),
	   "nor does it run when it no longer stops itself");
	ok(session_all(g.session, 0, KFD_SESSION_STOP) == KFD_SESSION_DONE &&
		   session_all(session, g.pid, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   session_state(session, g.pid, 0) == KFD_SESSION_STOPPED,
	   "and root does not let run what it has stopped itself");
	ok(session_all(g.session, 0, KFD_SESSION_RUN) == KFD_SESSION_DONE &&
		   session_state(session, g.pid, 0) == KFD_SESSION_ACTIVE,
	   "until it does so");
	end_giver(&g);
}

static int told[2];

static void leave_to_a_thread(void)
{
	struct dbg_client c;

	if (begin(&c) < 0)
		_exit(1);
	dbg_leave_to_a_thread(told[1]);
}

static void first_thread_is_gone(void)
{
	pid_t pid;

	if (pipe(told) < 0)
		return;
	pid = fork();
	if (pid == 0)
		leave_to_a_thread();
	close(told[1]);
	ok(byte_of(told[0]) == 'x', "a process whose first thread has exited has a queue");
	ok(both_are(session, pid, KFD_SESSION_DONE), "and does not escape by that");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int r, socket;

	if (argc > 1 && sscanf(argv[1], "%d", &socket) == 1)
		return become_another(socket);
	if (session_missing())
		return 0;
	kfd_open_up();
	r = kfd_open(&kfd);
	session = session_open(&kfd, 0);
	if (r == 0)
		r = session_peer(&peer, 1, 0);
	if (!ok(r == 0 && session >= 0, "root has a session, and a process with a queue"))
		return tap_done();
	ok(session_rights(&kfd) == (KFD_SESSION_RIGHT_ALL | KFD_SESSION_RIGHT_ADMIN), "root has all rights");
	tap_in_child(without_rights);
	tap_in_child(with_the_capability_alone);
	tap_in_child(rights_stay);
	tap_in_child(root_of_a_namespace);
	tap_in_child(user_and_pid_namespace);
	tap_in_child(pid_namespace);
	tap_in_child(device_cgroup);
	handed_over();
	handed_over_before_exec();
	other_users();
	own_session_against_root_s();
	first_thread_is_gone();
	ok(session_state(session, peer.pid, 0) == KFD_SESSION_ACTIVE, "nothing is left stopped");
	return tap_done();
}
