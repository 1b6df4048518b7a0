// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/manager.h"

#define CHILD_FD 3

/* In the child: nothing but system calls. */
static void become_proxy(int fd, const char *pid)
{
	const char *const args[] = { "gpreemptd", "--dbg", pid, "--fd", "3", NULL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd == CHILD_FD)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, CHILD_FD);
	execv("/proc/self/exe", (char *const *)args);
	_exit(127);
}

static int start(uint32_t pid, int *ret_fd)
{
	char number[16];
	int fds[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	snprintf(number, sizeof(number), "%u", pid);
	child = fork();
	if (child == 0)
		become_proxy(fds[1], number);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	*ret_fd = fds[0];
	return 0;
}

static void welcome(struct gp_manager *m, struct gp_peer *p)
{
	static struct gp_msg msg;

	msg.type = GP_MSG_WELCOME;
	msg.welcome.lease_ns = m->conf->lease_ns;
	(void)gp_peer_send(p, &msg);
}

int gp_proxy_need(struct gp_manager *m, struct gp_client *c)
{
	struct gp_peer *p;
	int fd = -1, r;

	if (c->proxy_state != GP_PROXY_NONE)
		return 0;
	r = start(c->pid, &fd);
	if (r == 0)
		r = gp_manager_add_peer(m, fd, &p);
	if (r < 0)
		return r;
	p->role = GP_ROLE_PROXY;
	p->ways = GP_KFD_WAY_DBG;
	p->pid = c->pid;
	p->client = c;
	c->proxy = p;
	c->proxy_state = GP_PROXY_STARTING;
	gp_log("debugging process %u (%s)", c->pid, c->name);
	welcome(m, p);
	return 0;
}

static bool in_use(const struct gp_client *c)
{
	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->awaits_proxy || (q->way == GP_KFD_WAY_DBG && q->state != GP_QUEUE_RUNNING))
			return true;
	}
	return false;
}

/* Not longer than need be: a process that exits while it is debugged may hang in the stock driver. */
void gp_proxy_used(struct gp_manager *m, struct gp_client *c)
{
	if (c->proxy_state != GP_PROXY_READY)
		return;
	if (in_use(c))
		gp_alarm_cancel(&m->loop, &c->unused);
	else if (!gp_alarm_is_set(&c->unused))
		gp_alarm_in(&m->loop, &c->unused, GP_PROXY_UNUSED_NS);
}

/* It resumes everything, lets go and ends: its end of the socket closes then. */
void gp_proxy_end(struct gp_manager *m, struct gp_client *c)
{
	gp_alarm_cancel(&m->loop, &c->unused);
	if (!c->proxy || c->proxy_state == GP_PROXY_ENDING)
		return;
	c->proxy_state = GP_PROXY_ENDING;
	(void)shutdown(c->proxy->watch.fd, SHUT_WR);
}

void gp_proxy_unused(void *arg)
{
	struct gp_client *c = arg;

	gp_log("letting go of process %u (%s)", c->pid, c->name);
	gp_proxy_end(c->manager, c);
}

void gp_proxy_reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}
