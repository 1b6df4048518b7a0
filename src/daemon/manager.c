// SPDX-License-Identifier: MIT
#include "daemon/manager.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/server.h"
#include "daemon/hang.h"
#include "daemon/log.h"
#include "daemon/notify.h"

#define GROUP "gpreempt"
#define END_NS (5 * GP_S)       /* for everything to be resumed, in the end */
#define ACCEPT_NS (300 * GP_US) /* of who comes by one socket; then others have their turn */
#define TURNED_AWAY 16          /* peers of a user that wait to be told so */
#define MOST_FILES 65536        /* descriptors */
#define PROCESSES_A_PLACE 8
#define TOLD_AT_ONCE 8            /* events */
#define JUDGE_NS (300 * GP_US)    /* then others have their turn */
#define SCAN_SHARE 50             /* one in so many: the CPU time that scans may use */
#define MOST_PAUSE_NS (10 * GP_S) /* between scans, whatever they use */

/* Who comes */

static bool is_root(const struct gp_peer *p)
{
	return p->account && p->account->key == GP_ACCOUNT_ROOT;
}

static void died(void *manager, struct gp_peer *p)
{
	struct gp_manager *m = manager;

	if (p->account && !p->is_ours && !is_root(p))
		m->taken--;
	gp_list_append(&m->dead, &p->of_dead);
}

static void read_all(void *manager, struct gp_peer *p)
{
	struct gp_manager *m = manager;

	gp_answer_more(m, p);
	gp_events_more(&m->events, p);
}

static const struct gp_peer_calls calls = { .message = gp_serve_message, .read_all = read_all, .dead = died };

int gp_manager_add_peer(struct gp_manager *m, int fd, struct gp_peer **ret)
{
	struct gp_peer *p;
	int r = gp_peer_new(&m->loop, fd, ++m->last_peer, m->conf->patience_ns, &calls, m, &p);

	if (r < 0)
		return r;
	gp_list_append(&m->peers, &p->all);
	*ret = p;
	return 0;
}

/* Where all places are taken, who has fewer than another gets one of the other's. */
static bool make_room(struct gp_manager *m, const struct gp_account *for_whom)
{
	const struct gp_account *largest = gp_account_largest(&m->accounts);

	if (!largest || largest->now.peers <= for_whom->now.peers)
		return false;
	for (struct gp_list *pos = m->peers.prev; pos != &m->peers; pos = pos->prev) {
		struct gp_peer *p = gp_container(pos, struct gp_peer, all);

		if (p->account != largest || p->dead || p->is_ours)
			continue;
		gp_peer_refuse(p, 0, -EBUSY, "all places are taken, and its user has the most of them");
		return true;
	}
	return false;
}

/* Or what is wrong. */
static int find_place(struct gp_manager *m, struct gp_peer *p, const char **ret_why)
{
	const struct gp_account *account = p->account;

	*ret_why = "this gpreemptd serves another user";
	if (!p->rights && geteuid() != 0)
		return -EPERM;
	*ret_why = "its user has too many connections";
	if (account->now.peers > account->most->peers)
		return -EBUSY;
	*ret_why = "all places are taken, and its user has as many as anybody";
	if (!is_root(p) && m->taken > m->places && !make_room(m, account))
		return -EBUSY;
	return 0;
}

/*
 * It has said HELLO by now, or will: who closes on somebody's words resets the connection, and
 * the reason is lost.  So it waits for that, unless too many do.
 */
static void turn_away(struct gp_manager *m, struct gp_peer *p, int status, const char *why)
{
	const struct gp_account *a = p->account;

	p->refused = status;
	p->refusal = why;
	if (a->now.peers > a->most->peers + TURNED_AWAY || m->taken > m->places + 4 * TURNED_AWAY)
		gp_peer_refuse(p, 0, status, why);
	else
		gp_peer_expect_hello(p, GP_HELLO_NS);
}

static int open_account(struct gp_manager *m, struct gp_peer *p, const struct gp_door *door, int identified)
{
	struct gp_account *account;
	uint64_t key = identified < 0 ? GP_ACCOUNT_UNSEEN : gp_account_key(&m->accounts, &p->identity);
	int r;

	/* Containers without an account of their own have none of root's or a user's places: the class has
	 * some. */
	if (identified == 0 && door->granted != GP_CLASS_UNKNOWN &&
	    (key == GP_ACCOUNT_ROOT || !(key & GP_ACCOUNT_NAMESPACE)))
		key = GP_ACCOUNT_CLASS | door->granted;
	r = gp_account_get(&m->accounts, key, &account);

	if (r < 0)
		return r;
	r = gp_peer_begin(p, account);
	m->taken += !is_root(p);
	return r;
}

/*
 * Whether root gave it the class: its folder is mounted for the process, where agents look, or the socket was
 * bound in the process's root folder and mount namespace.  Others reach it too, by /proc/PID/root of a
 * process of theirs in there, which some can make their own root folder, or from a folder that they were in
 * before it was closed.
 */
static bool was_given(const struct gp_peer *p, const struct gp_door *door)
{
	const struct gp_identity *id = &p->identity;

	if (gp_identity_is_local(id) && gp_identity_is_root(id))
		return true;
	if (!gp_identity_is_made_by_root(id))
		return false;
	if (door->folder.path[0])
		return gp_process_has_mounted(&p->process, GP_RUN_FOLDER, &door->folder);
	return id->mount_ns && id->mount_ns == door->mount_ns && id->root[1] &&
	       id->root[0] == door->root[0] && id->root[1] == door->root[1];
}

/* Whoever comes by a class's socket is of that class, and nobody whose word counts for others. */
static int enter(struct gp_peer *p, const struct gp_door *door, const char **ret_why)
{
	if (door->granted == GP_CLASS_UNKNOWN)
		return 0;
	p->granted = door->granted;
	p->rights = 0;
	*ret_why = "this socket is for containers that root mounted its folder into, as " GP_RUN_FOLDER;
	return was_given(p, door) ? 0 : -EPERM;
}

static void receive_peer(struct gp_manager *m, const struct gp_door *door, int fd)
{
	struct gp_peer *p;
	const char *why;
	int r;

	if (gp_manager_add_peer(m, fd, &p) < 0)
		return;
	r = gp_peer_identify(p, m->group);
	why = r == -ESRCH
		      ? "it has no process that this gpreemptd can see: it is in another pid namespace, or has "
			"ended"
		      : "it cannot be told who it is";
	if (open_account(m, p, door, r) < 0) {
		gp_peer_drop(p, NULL);
		return;
	}
	if (r == 0)
		r = find_place(m, p, &why);
	if (r == 0)
		r = enter(p, door, &why);
	if (r < 0)
		turn_away(m, p, r, why);
	else
		gp_peer_expect_hello(p, GP_HELLO_NS);
}

static void accept_some(void *arg, uint32_t events)
{
	struct gp_door *door = arg;
	struct gp_manager *m = door->manager;
	uint64_t end = gp_clock_ns() + ACCEPT_NS;

	(void)events;
	do {
		int fd = gp_listen_accept(&door->listen);

		if (fd >= 0) {
			receive_peer(m, door, fd);
			continue;
		}
		if (fd == -EMFILE ||
		    fd == -ENFILE) /* until the next heartbeat: it would be ready all the time */
			gp_loop_remove(&m->loop, &door->watch);
		return;
	} while (gp_clock_ns() < end);
}

static void bury_one(struct gp_manager *m, struct gp_peer *p)
{
	struct gp_account *account = p->account;

	gp_list_remove(&p->of_dead);
	if (!gp_peer_may_free(p)) {
		gp_list_append(&m->unclosed, &p->of_dead);
		return;
	}
	gp_peer_free(p);
	gp_account_put(&m->accounts, account);
}

static void bury(struct gp_manager *m)
{
	while (!gp_list_empty(&m->dead)) {
		struct gp_peer *p = gp_container(m->dead.next, struct gp_peer, of_dead);

		gp_serve_gone(m, p);
		bury_one(m, p);
	}
}

static void try_to_close(struct gp_manager *m)
{
	struct gp_list again;

	gp_list_init(&again);
	gp_list_each_safe(pos, &m->unclosed) {
		gp_list_remove(pos);
		gp_list_append(&again, pos);
	}
	gp_list_each_safe(pos, &again)
		bury_one(m, gp_container(pos, struct gp_peer, of_dead));
}

/* Alarms */

static bool listens_to(const struct gp_peer *p)
{
	return p->role == GP_ROLE_AGENT ||
	       (p->role == GP_ROLE_PROXY && p->client && p->client->proxy_state != GP_PROXY_ENDING);
}

static bool has_holds(void *arg, const struct gp_account *account)
{
	return gp_holds_of(gp_core_holds(((struct gp_manager *)arg)->core), account->id) > 0;
}

/* Every third of the shortest lease that somebody was told: two may be lost. */
static void heartbeat(void *arg)
{
	static struct gp_msg ping;
	struct gp_manager *m = arg;
	uint64_t lease_ns = m->conf->lease_ns, of_sessions;

	ping.type = GP_MSG_PING;
	gp_list_each(pos, &m->peers) {
		struct gp_peer *p = gp_container(pos, struct gp_peer, all);

		if (listens_to(p)) {
			(void)gp_peer_send(p, &ping);
			lease_ns = p->lease_ns < lease_ns ? p->lease_ns : lease_ns;
		}
		gp_peer_look(p);
	}
	try_to_close(m);
	gp_world_tidy_all(&m->world);
	gp_accounts_tidy(&m->accounts, has_holds, m);
	for (size_t i = 0; i < GP_DOORS; i++) /* -EEXIST, unless descriptors had run out */
		(void)gp_loop_add(&m->loop, &m->doors[i].watch, EPOLLIN);
	gp_attach_look(m);
	gp_jobs_look(m);
	of_sessions = gp_sessions_renew(m);
	gp_settings_renew(m);
	lease_ns = of_sessions < lease_ns ? of_sessions : lease_ns;
	gp_alarm_in(&m->loop, &m->heartbeat, lease_ns / 3);
}

static void watchdog(void *arg)
{
	struct gp_manager *m = arg;

	gp_notify("WATCHDOG=1");
	gp_alarm_in(&m->loop, &m->watchdog, gp_notify_watchdog());
}

/* Scans */

/* A process without an agent; one with an agent has the rights it connected with. */
static void set_trust(const struct gp_manager *m, struct gp_client *c)
{
	const struct gp_identity *id = gp_client_identity(&m->world, c);

	if (!c->agent)
		c->trusted = gp_identity_is_root(id) || (id->is_member && gp_identity_is_local(id)) ||
			     (geteuid() != 0 && id->uid == geteuid());
}

void gp_judge_client(struct gp_manager *m, struct gp_client *c)
{
	gp_check_owner(m, c);
	gp_jobs_find(m, c);
	set_trust(m, c);
	gp_schedule_client_changed(m, c);
	gp_list_each(pos, &c->queues)
		gp_judge(m, gp_container(pos, struct gp_queue, of_client));
}

/* Those that have not been since the scan; false: not all of them yet. */
static bool judge_some(struct gp_manager *m)
{
	uint64_t end = gp_clock_ns() + JUDGE_NS;

	gp_list_each(pos, &m->world.all_clients) {
		struct gp_client *c = gp_container(pos, struct gp_client, all);

		if (c->handle <= m->judged)
			continue; /* they are in order of handle */
		if (gp_clock_ns() >= end)
			return false;
		gp_judge_client(m, c);
		m->judged = c->handle;
	}
	return true;
}

/* Where a scan takes long it is made less often. */
static void judge(void *arg)
{
	struct gp_manager *m = arg;
	uint64_t begun = gp_cpu_ns(), pause;
	bool is_done = judge_some(m);

	m->scan_cpu_ns += gp_cpu_ns() - begun;
	if (!is_done) {
		gp_alarm_in(&m->loop, &m->judge, 1); /* in the next step */
		return;
	}
	pause = m->scan_cpu_ns * SCAN_SHARE;
	pause = pause < MOST_PAUSE_NS ? pause : MOST_PAUSE_NS;
	if (m->conf->scan_ns && !gp_alarm_is_set(&m->scan)) /* else it is sooner: reload() */
		gp_alarm_in(&m->loop, &m->scan, pause > m->conf->scan_ns ? pause : m->conf->scan_ns);
}

/* Once, until there is one. */
static void warn_of_none(struct gp_manager *m, const struct gp_found *found)
{
	const char *root = m->conf->root, *slash = root[strlen(root) - 1] == '/' ? "" : "/";

	if (!found->ndevices && !m->found_none)
		gp_log("no GPU is in %s%ssys/class/kfd/kfd/topology/nodes, where amdgpu shows them, or in %s%sproc/driver/nvidia/gpus; each scan looks again",
		       root, slash, root, slash);
	m->found_none = !found->ndevices;
}

/* Once for each device, until it is otherwise. */
static void warn_of_ways(struct gp_manager *m)
{
	char text[128];

	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		bool is_unreached = gp_route_unreached(m, i, text, sizeof(text));

		if (is_unreached && !(m->unreached >> i & 1))
			gp_log_about(GP_ABOUT_DEVICE(i), "device %u (%s): %s", i,
				     m->world.devices.by_number[i]->info.name, text);
		m->unreached = (m->unreached & ~(1ull << i)) | (uint64_t)is_unreached << i;
	}
}

static void take_scan(void *arg)
{
	struct gp_manager *m = arg;
	struct gp_scanner *read = &m->scanner;
	uint64_t begun = gp_cpu_ns();

	if (read->r == 0) {
		warn_of_none(m, read->found);
		gp_devices_scanned(&m->world.devices, read->found);
		gp_schedule_devices(m);
		warn_of_ways(m);
		gp_sessions_open(m);
		gp_world_scan(&m->world, read->found, read->begun_ns);
	} else {
		gp_log("cannot look for queues: %s", strerror(-read->r));
	}
	gp_world_take_places(&m->world, read->others, read->nothers);
	gp_world_scan_ends(&m->world);
	m->judged = 0;
	m->scan_cpu_ns = read->cpu_ns + gp_cpu_ns() - begun;
	judge(m);
}

static void scan(void *arg)
{
	struct gp_manager *m = arg;

	struct gp_found_client *unseen;
	size_t n = gp_world_unseen(&m->world, &unseen);

	gp_world_scan_begins(&m->world);
	gp_scanner_begin(&m->scanner, unseen, n);
}

/* What the world tells of */

/* Who held what it was has no right over what it is: a program may become another user's by exec(). */
void gp_check_owner(struct gp_manager *m, struct gp_client *c)
{
	if (gp_client_changed_hands(&m->world, c))
		gp_core_free_client(m->core, c->handle, m->loop.now_ns);
}

static void queue_came(void *manager, struct gp_queue *q)
{
	struct gp_manager *m = manager;
	int r;

	gp_check_owner(m, q->client);
	gp_judge(m, q);
	m->reserves_changed = true;
	r = gp_core_adopt(m->core, q->handle, m->loop.now_ns);
	if (r < 0)
		gp_account_log(gp_queue_account(q), m->loop.now_ns, GP_ABOUT_QUEUE(q),
			       "queue %llu of process %u is new, and not held: %s",
			       (unsigned long long)q->handle, q->client->pid,
			       r == -ENOSPC ? "who holds its process holds too much" : strerror(-r));
}

static void queue_goes(void *manager, struct gp_queue *q)
{
	gp_schedule_queue_gone(manager, q);
}

static int client_came(void *manager, struct gp_client *c)
{
	return gp_schedule_client(manager, c);
}

static void client_goes(void *manager, struct gp_client *c)
{
	gp_jobs_client_gone(manager, c);
	gp_sessions_client_gone(manager, c);
	gp_schedule_client_gone(manager, c);
}

static bool queue_needed(void *manager, const struct gp_queue *q)
{
	struct gp_manager *m = manager;

	return gp_holds_held(gp_core_holds(m->core), q->handle) && gp_process_lives(&q->client->process);
}

/* Signals */

/*
 * As many places as there are descriptors for: each peer has its socket, its process, and
 * maybe a client and an account of its own.  Half of all is left to root, debuggers and files.
 */
static size_t count_places(const struct gp_conf *conf)
{
	size_t most = conf->places ? conf->places : GP_USUAL_PEERS;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return most < GP_USUAL_PEERS / 8 ? most : GP_USUAL_PEERS / 8;
	files.rlim_cur = files.rlim_max < MOST_FILES ? files.rlim_max : MOST_FILES;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur / 8 < most ? files.rlim_cur / 8 : most;
}

static void find_group(struct gp_manager *m)
{
	const struct group *group = getgrnam(GROUP);

	m->group = group ? (int64_t)group->gr_gid : -1;
	gp_process_name_group(m->group);
}

/* Whoever is connected stays; agents keep the lease that they were told. */
static void reload(struct gp_manager *m)
{
	if (gp_conf_reload(m->conf) < 0) {
		gp_log("the configuration stays as it was");
		return;
	}
	find_group(m); /* it may have been made since */
	m->places = count_places(m->conf);
	m->world.most_processes = m->places * PROCESSES_A_PLACE;
	gp_list_each(pos, &m->peers)
		gp_container(pos, struct gp_peer, all)->patience_ns = m->conf->patience_ns;
	gp_schedule_reload(m);
	gp_alarm_in(&m->loop, &m->heartbeat, 0);
	gp_alarm_in(&m->loop, &m->scan, 0); /* which judges all queues again */
	gp_log("the configuration was read again");
}

static void signal_came(void *arg, uint32_t events)
{
	struct gp_manager *m = arg;
	struct signalfd_siginfo info;

	(void)events;
	if (read(m->signals.fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		gp_proxy_reap();
	else if (info.ssi_signo == SIGHUP)
		reload(m);
	else
		m->ending = true;
}

static int watch_signals(struct gp_manager *m)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that may not grow is no reason to end */
	m->signals = (struct gp_watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
					.fn = signal_came,
					.arg = m };
	return m->signals.fd < 0 ? -errno : gp_loop_add(&m->loop, &m->signals, EPOLLIN);
}

/* From beginning to end */

static void nothing(void *manager)
{
	(void)manager; /* settle() does it */
}

static int set_alarms(struct gp_manager *m)
{
	const struct {
		struct gp_alarm *alarm;
		void (*fn)(void *arg);
	} alarms[] = { { &m->scan, scan },
		       { &m->judge, judge },
		       { &m->tell, nothing },
		       { &m->heartbeat, heartbeat },
		       { &m->reserve_turn, gp_reserve_next },
		       { &m->reserve, gp_reserve_again },
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
				      .accounts = &m->accounts,
				      .most_processes = m->places * PROCESSES_A_PLACE,
				      .manager = m,
				      .came = queue_came,
				      .goes = queue_goes,
				      .client_came = client_came,
				      .client_goes = client_goes,
				      .needed = queue_needed,
				      .overdue = gp_route_overdue,
				      .proxy_unused = gp_proxy_unused };
	gp_world_init(&m->world, gp_clock_ns());
}

static void close_doors(struct gp_manager *m)
{
	for (size_t i = 0; i < GP_DOORS; i++) {
		gp_loop_remove(&m->loop, &m->doors[i].watch);
		m->doors[i].watch.fd = -1;
	}
	gp_attach_close(m);
}

int gp_manager_open_door(struct gp_manager *m, struct gp_door *door)
{
	door->watch = (struct gp_watch){ .fd = door->listen.fd, .fn = accept_some, .arg = door };
	return gp_loop_add(&m->loop, &door->watch, EPOLLIN);
}

static int find_folder(struct gp_door *door)
{
	char folder[sizeof(door->listen.path)];
	int r;

	snprintf(folder, sizeof(folder), "%s", door->listen.path);
	*strrchr(folder, '/') = '\0';
	r = gp_folder_find(folder, &door->folder);
	if (r < 0)
		(void)gp_die("%s is nowhere in /proc/self/mountinfo: %s; choose another by --class-sockets",
			     folder, strerror(-r));
	door->manager->is_told = r < 0;
	return r;
}

static const char *class_of(const struct gp_door *door)
{
	return door->granted == GP_CLASS_ONLINE ? "online" : "offline";
}

/* Docker makes a folder of what it is to mount and cannot find. All others are served all the same. */
static int do_without(const struct gp_door *door)
{
	gp_log("%s", door->listen.error);
	gp_log("class %s has no socket: remove what is in its place, and start gpreemptd again",
	       class_of(door));
	return 0;
}

static int open_first(const struct gp_conf *conf, struct gp_listen *l)
{
	int lent = gp_notify_socket(conf->socket);

	return lent < 0 ? gp_listen_open(l, "gpreemptd", conf->socket, conf->old_kernel)
			: gp_listen_open_lent(l, "gpreemptd", conf->socket, lent, conf->old_kernel);
}

static int open_door(struct gp_manager *m, struct gp_door *door)
{
	const struct gp_conf *conf = m->conf;
	int r;

	if (door->granted == GP_CLASS_UNKNOWN)
		r = open_first(conf, &door->listen);
	else
		r = gp_listen_open_behind(&door->listen, "gpreemptd", conf->class_sockets, class_of(door),
					  conf->old_kernel);
	if (r == -EEXIST && door->granted != GP_CLASS_UNKNOWN)
		return do_without(door);
	if (r < 0) {
		(void)gp_die("%s", door->listen.error);
		m->is_told = true;
		return r;
	}
	r = door->granted == GP_CLASS_UNKNOWN ? 0 : find_folder(door);
	if (r < 0)
		return r;
	return gp_manager_open_door(m, door);
}

static int listen_to_all(struct gp_manager *m)
{
	size_t doors = strcmp(m->conf->class_sockets, GP_CONF_NONE) ? GP_DOORS : 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < doors; i++)
		r = open_door(m, &m->doors[i]);
	return r;
}

static void prepare_doors(struct gp_manager *m)
{
	static const uint32_t granted[GP_DOORS] = { GP_CLASS_UNKNOWN, GP_CLASS_ONLINE, GP_CLASS_OFFLINE };

	for (size_t i = 0; i < GP_DOORS; i++)
		m->doors[i] = (struct gp_door){ .listen = { .fd = -1, .lock = -1 },
						.watch = { .fd = -1, .epoll = -1 },
						.granted = granted[i],
						.manager = m };
}

int gp_manager_open(struct gp_manager *m, struct gp_conf *conf)
{
	int r;

	memset(m, 0, sizeof(*m));
	m->conf = conf;
	m->places = count_places(conf);
	find_group(m);
	prepare_doors(m);
	m->signals.fd = -1;
	gp_list_init(&m->peers);
	gp_list_init(&m->dead);
	gp_list_init(&m->unclosed);
	gp_list_init(&m->attachments);
	gp_list_init(&m->jobs);
	gp_accounts_init(&m->accounts, &m->loop, conf->root, &conf->limits);
	prepare_world(m);
	m->scanner.ended.fd = -1;
	r = gp_loop_open(&m->loop);
	if (r == 0)
		r = gp_events_open(&m->events);
	if (r == 0)
		r = gp_scanner_open(&m->scanner, &m->loop, conf->root, take_scan, m);
	if (r == 0)
		r = gp_schedule_open(m);
	if (r == 0)
		r = watch_signals(m);
	if (r == 0)
		r = set_alarms(m);
	if (r == 0)
		r = listen_to_all(m);
	if (r == 0)
		gp_attach_again(m);
	if (r == 0)
		gp_jobs_again(m); /* before any of their processes is heard */
	if (r == 0 && gp_hang_watch(m->doors[0].listen.path)) {
		gp_log("the last gpreemptd ended because a policy did not return: every device begins with fifo");
		m->is_wary = true;
	}
	return r;
}

static void settle(struct gp_manager *m)
{
	bool is_behind;

	do {
		bury(m);
		gp_reserve_apply(m);
		gp_schedule_step(m);
		/* Last, and little while anybody else is there: nobody waits for those who watch. */
		is_behind = gp_events_tell(&m->events, m->loop.is_idle ? TOLD_AT_ONCE : 1);
	} while (!gp_list_empty(&m->dead));
	gp_alarm_at(&m->loop, &m->reserve, m->reserves_changed ? gp_reserve_due(m) : UINT64_MAX);
	gp_alarm_at(&m->loop, &m->tell, is_behind ? m->loop.now_ns : UINT64_MAX);
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
	m->nreserves = 0;
	m->reserves_changed = true;
	gp_schedule_end(m);
}

/* Agents would resume by themselves when we are gone; it is better to see it. */
static void end(struct gp_manager *m)
{
	uint64_t deadline = gp_clock_ns() + END_NS;

	gp_notify("STOPPING=1");
	gp_log("ending; everything is resumed");
	close_doors(m);
	release_everything(m);
	settle(m);
	while (!gp_schedule_at_rest(m) && gp_clock_ns() < deadline && gp_loop_step(&m->loop) == 0)
		settle(m);
	gp_list_each(pos, &m->world.all_clients)
		gp_proxy_end(m, gp_container(pos, struct gp_client, all));
	deadline = gp_clock_ns() + END_NS;
	while (has_proxies(m) && gp_clock_ns() < deadline && gp_loop_step(&m->loop) == 0)
		settle(m);
}

/* Agents and tools go by it: gp_server_check(). */
static void warn_of_folder(const char *path)
{
	uint32_t owner;

	if (gp_server_folder_owner(path, &owner) == 0 && owner != geteuid())
		gp_log("that folder is user %u's: nobody comes to a socket there; give it one of your own by "
		       "--socket",
		       owner);
}

int gp_manager_run(struct gp_manager *m)
{
	int r = 0;

	gp_log("version %s", GPREEMPT_VERSION);
	for (size_t i = 0; i < GP_DOORS; i++)
		if (m->doors[i].listen.fd >= 0)
			gp_log("listening on %s", m->doors[i].listen.path);
	warn_of_folder(m->doors[0].listen.path);
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
	gp_attach_close(m);
	gp_jobs_close(m);
	gp_scanner_close(&m->scanner);
	gp_world_free(&m->world);
	gp_accounts_free(&m->accounts);
	gp_sessions_end(m); /* none waits for another */
	gp_settings_close(m);
	gp_sessions_close(m);
	gp_schedule_close(m);
	gp_events_close(&m->events);
	for (size_t i = 0; i < GP_DOORS; i++)
		gp_listen_close(&m->doors[i].listen);
	if (m->signals.fd >= 0)
		close(m->signals.fd);
	gp_loop_close(&m->loop);
}
