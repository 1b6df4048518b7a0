// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/closer.h"
#include "daemon/dbg.h"
#include "daemon/manager.h"

#define MOST_DEBUGGERS 64
#define START_BURST 8 /* of the processes of one user, which come back at so many a second */
#define STARTS_A_SECOND 1
#define FIRST_PAUSE_NS GP_S /* after one that failed; then twice as long each time */
#define MOST_DOUBLINGS 6

/* In the child: nothing but system calls. Numbers above both: neither is in the other's way. */
static void become_proxy(int fd, int process, char *const *args)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, GP_DBG_PROCESS + 1);
	process = fcntl(process, F_DUPFD_CLOEXEC, GP_DBG_PROCESS + 1);
	if (fd >= 0 && process >= 0 && dup2(fd, GP_DBG_SOCKET) >= 0 && dup2(process, GP_DBG_PROCESS) >= 0)
		execv("/proc/self/exe", args);
	_exit(127);
}

static int start(const struct gp_client *c, int *ret_fd)
{
	char pid[16], uid[16];
	const char *const args[] = { "gpreemptd", "--dbg", pid, "--uid", uid, NULL };
	int fds[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	snprintf(pid, sizeof(pid), "%u", c->pid);
	snprintf(uid, sizeof(uid), "%u", c->identity.uid);
	child = fork();
	if (child == 0)
		become_proxy(fds[1], c->process.fd, (char *const *)args);
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
	msg.welcome.lease_ns = p->lease_ns = m->conf->lease_ns;
	(void)gp_peer_send(p, &msg);
}

/* Whether one may be started: root does it, and users can make root do it. */
static int may_start(struct gp_manager *m, struct gp_client *c, struct gp_account *account,
		     const char **ret_why)
{
	uint64_t now = m->loop.now_ns;

	*ret_why = "its process cannot be told from another with its number";
	if (c->process.fd < 0 || gp_client_identity(&m->world, c)->uid == UINT32_MAX)
		return -ESRCH;
	*ret_why = "its last debugger failed a moment ago";
	if (now < c->proxy_retry_ns)
		return -EAGAIN;
	*ret_why = "there are too many debuggers";
	if (m->debuggers >= MOST_DEBUGGERS || account->now.debuggers >= account->most->debuggers)
		return -EAGAIN;
	*ret_why = "debuggers of this user's processes are started too often";
	if (account->key != GP_ACCOUNT_ROOT &&
	    !gp_bucket_take(&account->debugger_starts, START_BURST, STARTS_A_SECOND, now))
		return -EAGAIN;
	*ret_why = NULL;
	return 0;
}

static int begin(struct gp_manager *m, struct gp_client *c, struct gp_account *account)
{
	struct gp_peer *p;
	int fd = -1, r = start(c, &fd);

	if (r == 0)
		r = gp_manager_add_peer(m, fd, &p);
	if (r < 0)
		return r;
	p->is_ours = p->is_known = true;
	p->role = GP_ROLE_PROXY;
	p->ways = GP_KFD_WAY_DBG;
	p->pid = c->pid;
	p->uid = c->uid;
	p->client = c;
	c->proxy = p;
	c->proxy_state = GP_PROXY_STARTING;
	m->debuggers++;
	account->now.debuggers++;
	if (gp_peer_begin(p, account) < 0)
		gp_peer_drop(p, "it cannot be heard");
	gp_account_log(account, m->loop.now_ns, GP_ABOUT_PROCESS(c->pid), "debugging process %u (%s)", c->pid,
		       c->name);
	welcome(m, p);
	return 0;
}

int gp_proxy_need(struct gp_manager *m, struct gp_client *c, const char **ret_why)
{
	struct gp_account *account;
	int r;

	*ret_why = NULL;
	if (c->proxy_state != GP_PROXY_NONE)
		return 0;
	r = gp_account_get(&m->accounts, c->account, &account);
	if (r < 0)
		return r;
	r = may_start(m, c, account, ret_why);
	if (r == 0)
		r = begin(m, c, account);
	if (r < 0)
		gp_account_put(&m->accounts, account); /* else the peer has it */
	return r;
}

void gp_proxy_failed(struct gp_manager *m, struct gp_client *c)
{
	c->proxy_retry_ns = m->loop.now_ns + (FIRST_PAUSE_NS << c->proxy_failures);
	c->proxy_failures += c->proxy_failures < MOST_DOUBLINGS;
}

void gp_proxy_ended(struct gp_manager *m, const struct gp_peer *p)
{
	m->debuggers--;
	p->account->now.debuggers--;
}

static bool in_use(const struct gp_manager *m, const struct gp_client *c)
{
	gp_list_each(pos, &c->queues) {
		const struct gp_queue *q = gp_container(pos, struct gp_queue, of_client);

		if (q->route.awaits_proxy ||
		    (q->route.way == GP_KFD_WAY_DBG && gp_schedule_status(m, q).state != GP_QUEUE_RUNNING))
			return true;
	}
	return false;
}

/* Not longer than need be: a process that exits while it is debugged may hang in the stock driver. */
void gp_proxy_used(struct gp_manager *m, struct gp_client *c)
{
	if (c->proxy_state != GP_PROXY_READY)
		return;
	if (in_use(m, c))
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

	gp_proxy_end(c->manager, c);
}

void gp_proxy_reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		gp_closer_ended(pid);
}
