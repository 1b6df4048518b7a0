// SPDX-License-Identifier: MIT
#include "daemon/manager.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/registry.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/remote.h"

#define GROUP "gpreempt"
#define END_NS (5 * GP_S) /* for everything to be resumed, in the end */

/* Who comes */

static void some_dead(void *manager)
{
	((struct gp_manager *)manager)->some_dead = true;
}

static const struct gp_peer_calls calls = { .message = gp_serve_message,
					    .read_all = gp_answer_more,
					    .dead = some_dead };

int gp_manager_add_peer(struct gp_manager *m, int fd, struct gp_peer **ret)
{
	struct gp_peer *p;
	int r = gp_peer_new(&m->loop, fd, ++m->last_peer, m->conf->patience_ns, &calls, m, &p);

	if (r < 0)
		return r;
	gp_list_append(&m->peers, &p->all);
	m->npeers++;
	*ret = p;
	return 0;
}

static size_t peers_of(const struct gp_manager *m, uint32_t uid)
{
	size_t n = 0;

	gp_list_each(pos, &m->peers)
		n += gp_container(pos, struct gp_peer, all)->uid == uid;
	return n;
}

static const char *unwelcome(const struct gp_manager *m, const struct gp_peer *p)
{
	if (m->npeers > GP_MOST_PEERS)
		return "there are too many";
	if (!p->rights && geteuid() != 0)
		return "this gpreemptd serves another user";
	if (!p->rights && peers_of(m, p->uid) > GP_MOST_PEERS_OF_A_USER)
		return "its user has too many connections";
	return NULL;
}

static void accept_one(void *arg, uint32_t events)
{
	struct gp_manager *m = arg;
	int fd = accept4(m->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct gp_peer *p;
	const char *why;

	(void)events;
	if (fd < 0) {
		if (errno == EMFILE ||
		    errno == ENFILE) /* until the next heartbeat: it would be ready all the time */
			gp_loop_remove(&m->loop, &m->listening);
		return;
	}
	if (gp_manager_add_peer(m, fd, &p) < 0)
		return;
	if (gp_peer_identify(p, m->group) < 0) {
		gp_peer_drop(p, NULL);
		return;
	}
	why = unwelcome(m, p);
	if (why) {
		(void)gp_peer_error(p, 0, -EPERM, why);
		gp_peer_drop(p, why);
		return;
	}
	gp_peer_expect_hello(p, GP_HELLO_NS);
}

static void bury(struct gp_manager *m)
{
	while (m->some_dead) {
		m->some_dead = false;
		gp_list_each_safe(pos, &m->peers) {
			struct gp_peer *p = gp_container(pos, struct gp_peer, all);

			if (!p->dead)
				continue;
			gp_serve_gone(m, p);
			gp_peer_free(p);
			m->npeers--;
		}
	}
}

/* Alarms */

static bool listens_to(const struct gp_peer *p)
{
	return p->role == GP_ROLE_AGENT ||
	       (p->role == GP_ROLE_PROXY && p->client && p->client->proxy_state != GP_PROXY_ENDING);
}

/* Every third of the lease: two may be lost. */
static void heartbeat(void *arg)
{
	static struct gp_msg ping;
	struct gp_manager *m = arg;

	ping.type = GP_MSG_PING;
	gp_list_each(pos, &m->peers) {
		struct gp_peer *p = gp_container(pos, struct gp_peer, all);

		if (listens_to(p))
			(void)gp_peer_send(p, &ping);
	}
	(void)gp_loop_add(&m->loop, &m->listening, EPOLLIN); /* -EEXIST, unless descriptors had run out */
	gp_alarm_in(&m->loop, &m->heartbeat, m->conf->lease_ns / 3);
}

static void watchdog(void *arg)
{
	struct gp_manager *m = arg;

	gp_notify("WATCHDOG=1");
	gp_alarm_in(&m->loop, &m->watchdog, gp_notify_watchdog());
}

static void leases_end(void *arg)
{
	struct gp_manager *m = arg;

	gp_holds_expire(m->holds, m->loop.now_ns);
}

/* Scans */

static bool has_group(const char *root, uint32_t pid, int64_t group)
{
	char path[256], line[4096];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/%u/status", root, pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *at = line + 7, *end;

		if (strncmp(line, "Groups:", 7) != 0)
			continue;
		for (long gid = strtol(at, &end, 10); end != at; gid = strtol(at = end, &end, 10))
			found |= gid == group;
	}
	if (f)
		fclose(f);
	return found;
}

/* A process without an agent; of one with an agent the kernel has said who it is. */
static void set_trust(const struct gp_manager *m, struct gp_client *c)
{
	if (c->agent)
		return;
	c->trusted = c->uid == 0 || (geteuid() != 0 && c->uid == geteuid()) ||
		     (m->group >= 0 && has_group(m->conf->root, c->pid, m->group));
}

static void scan(void *arg)
{
	struct gp_manager *m = arg;
	const struct gp_discover_opts opts = { .root = m->conf->root };
	struct gp_found *found;
	int r = gp_discover(&opts, &found);

	if (r == 0)
		gp_world_scan(&m->world, found);
	else
		gp_log("cannot look for queues: %s", strerror(-r));
	gp_list_each(pos, &m->world.all_clients)
		set_trust(m, gp_container(pos, struct gp_client, all));
	gp_list_each(pos, &m->world.all_queues)
		gp_judge(m, gp_container(pos, struct gp_queue, all));
	if (m->conf->scan_ns)
		gp_alarm_in(&m->loop, &m->scan, m->conf->scan_ns);
}

/* What the world tells of */

static void queue_came(void *manager, struct gp_queue *q)
{
	struct gp_manager *m = manager;

	gp_judge(m, q);
	m->reserves_changed = true;
	if (gp_holds_adopt(m->holds, q->handle, q->client->handle) < 0)
		gp_log("no memory to hold queue %llu of process %u, which is new",
		       (unsigned long long)q->handle, q->client->pid);
}

static void queue_goes(void *manager, struct gp_queue *q)
{
	gp_drive_gone(manager, q);
}

static bool queue_needed(void *manager, const struct gp_queue *q)
{
	struct gp_manager *m = manager;
	const struct gp_client *c = q->client;

	return gp_holds_held(m->holds, q->handle) && c->start && gp_process_start("/", c->pid) == c->start;
}

/* Signals */

static void signal_came(void *arg, uint32_t events)
{
	struct gp_manager *m = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(m->signals.fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		gp_proxy_reap();
	else
		m->ending = true;
}

static int watch_signals(struct gp_manager *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	m->signals = (struct gp_watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
					.fn = signal_came,
					.arg = m };
	return m->signals.fd < 0 ? -errno : gp_loop_add(&m->loop, &m->signals, EPOLLIN);
}

/* From beginning to end */

static int set_alarms(struct gp_manager *m)
{
	const struct {
		struct gp_alarm *alarm;
		void (*fn)(void *arg);
	} alarms[] = { { &m->scan, scan },
		       { &m->heartbeat, heartbeat },
		       { &m->leases, leases_end },
		       { &m->turns, gp_reserve_next },
		       { &m->watchdog, watchdog } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(alarms) / sizeof(alarms[0]); i++)
		r = gp_alarm_init(&m->loop, alarms[i].alarm, alarms[i].fn, m);
	if (r < 0)
		return r;
	gp_alarm_in(&m->loop, &m->scan, 0);
	gp_alarm_in(&m->loop, &m->heartbeat, 0);
	if (gp_notify_watchdog())
		gp_alarm_in(&m->loop, &m->watchdog, 0);
	return 0;
}

static void prepare_world(struct gp_manager *m)
{
	m->world = (struct gp_world){ .root = m->conf->root,
				      .loop = &m->loop,
				      .manager = m,
				      .came = queue_came,
				      .goes = queue_goes,
				      .needed = queue_needed,
				      .overdue = gp_drive_overdue,
				      .proxy_unused = gp_proxy_unused };
	gp_world_init(&m->world);
}

static int open_remote(struct gp_manager *m)
{
	const struct gp_backend_opts opts = { .size = sizeof(opts), .params = m };
	int r = gp_backend_complete(&m->ops, &gp_remote_ops);

	return r < 0 ? r : m->ops.open(&opts, &m->remote);
}

static int listen_to_all(struct gp_manager *m)
{
	int r = gp_listen_open(&m->listen, m->conf->socket);

	if (r < 0)
		return r;
	m->listening = (struct gp_watch){ .fd = m->listen.fd, .fn = accept_one, .arg = m };
	return gp_loop_add(&m->loop, &m->listening, EPOLLIN);
}

int gp_manager_open(struct gp_manager *m, const struct gp_conf *conf)
{
	const struct group *group = getgrnam(GROUP);
	int r;

	memset(m, 0, sizeof(*m));
	m->conf = conf;
	m->group = group ? (int64_t)group->gr_gid : -1;
	m->listen.fd = m->listen.lock = m->signals.fd = -1;
	gp_list_init(&m->peers);
	gp_list_init(&m->outbox);
	gp_list_init(&m->requests);
	prepare_world(m);
	r = gp_loop_open(&m->loop);
	if (r == 0)
		r = gp_holds_new(&m->holds);
	if (r == 0)
		r = open_remote(m);
	if (r == 0)
		r = watch_signals(m);
	if (r == 0)
		r = set_alarms(m);
	return r < 0 ? r : listen_to_all(m);
}

static void settle(struct gp_manager *m)
{
	do {
		bury(m);
		gp_drive_changes(m);
		gp_reserve_apply(m);
		gp_drive_flush(m);
	} while (m->some_dead || m->reserves_changed);
	gp_alarm_at(&m->loop, &m->leases, gp_holds_next(m->holds));
}

static bool has_proxies(const struct gp_manager *m)
{
	gp_list_each(pos, &m->peers)
		if (gp_container(pos, struct gp_peer, all)->role == GP_ROLE_PROXY)
			return true;
	return false;
}

static void release_everything(struct gp_manager *m)
{
	memset(m->reserves, 0, sizeof(m->reserves));
	m->reserves_changed = true;
	gp_list_each(pos, &m->world.all_queues)
		gp_holds_forget(m->holds, gp_container(pos, struct gp_queue, all)->handle);
	gp_list_each(pos, &m->world.all_clients)
		gp_holds_forget_client(m->holds, gp_container(pos, struct gp_client, all)->handle);
}

/* Agents would resume by themselves when we are gone; it is better to see it. */
static void end(struct gp_manager *m)
{
	uint64_t deadline = gp_clock_ns() + END_NS;

	gp_notify("STOPPING=1");
	gp_log("ending; everything is resumed");
	gp_loop_remove(&m->loop, &m->listening);
	m->listening.fd = -1;
	release_everything(m);
	settle(m);
	while (!gp_drive_at_rest(m) && gp_clock_ns() < deadline && gp_loop_step(&m->loop) == 0)
		settle(m);
	gp_list_each(pos, &m->world.all_clients)
		gp_proxy_end(m, gp_container(pos, struct gp_client, all));
	deadline = gp_clock_ns() + END_NS;
	while (has_proxies(m) && gp_clock_ns() < deadline && gp_loop_step(&m->loop) == 0)
		settle(m);
}

int gp_manager_run(struct gp_manager *m)
{
	int r = 0;

	gp_log("listening on %s", m->listen.path);
	gp_notify("READY=1");
	settle(m);
	while (r == 0 && !m->ending) {
		r = gp_loop_step(&m->loop);
		settle(m);
	}
	end(m);
	return r;
}

void gp_manager_close(struct gp_manager *m)
{
	gp_list_each_safe(pos, &m->peers)
		gp_peer_drop(gp_container(pos, struct gp_peer, all), NULL);
	bury(m);
	gp_world_free(&m->world);
	if (m->remote)
		m->ops.close(m->remote);
	gp_holds_free(m->holds);
	gp_listen_close(&m->listen);
	if (m->signals.fd >= 0)
		close(m->signals.fd);
	gp_loop_close(&m->loop);
}
