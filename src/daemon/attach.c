// SPDX-License-Identifier: MIT
/*
 * Containers that ran already when they were given a class: a socket of ours in the folder of each, bound by
 * a process of its own (binder.h), through which they come as by a class's socket.  It lasts as long as the
 * process that was named.  A file beside our own socket has them all, for the next gpreemptd.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/binder.h"
#include "daemon/kept.h"
#include "daemon/log.h"
#include "daemon/manager.h"

#define MOST 64
#define PATIENCE_NS ((GP_BINDER_S + 1) * GP_S)
#define LINE 64 /* bytes, of the file */
#define SILENT "its files do not answer"
#define KEPT "attached"

struct gp_attachment {
	struct gp_list all;
	struct gp_manager *manager;
	struct gp_door door;
	struct gp_process process;
	struct gp_watch ended;  /* the process; where it has no pidfd, gp_attach_look() sees it */
	uint64_t start;         /* of the process: gp_proc_start() */
	struct gp_watch report; /* of the binder; -1: it is bound */
	struct gp_alarm patience;
	uint64_t asker; /* a peer's id; 0: nobody waits */
	uint32_t serial;
};

static struct gp_attachment *of(struct gp_list *pos)
{
	return gp_container(pos, struct gp_attachment, all);
}

static const char *class_of(const struct gp_attachment *a)
{
	return a->door.granted == GP_CLASS_ONLINE ? "online" : "offline";
}

/* The file */

static size_t describe(const struct gp_manager *m, char text[MOST * LINE])
{
	size_t used = 0;

	gp_list_each(pos, &m->attachments) {
		const struct gp_attachment *a = of(pos);

		used += (size_t)snprintf(text + used, LINE, "%u %" PRIu64 " %s\n", a->process.pid, a->start,
					 class_of(a));
	}
	return used;
}

static void save(const struct gp_manager *m)
{
	char text[MOST * LINE];

	gp_kept_write(m->conf, KEPT, text, describe(m, text));
}

/* From beginning to end */

static void stop_watching(struct gp_loop *l, struct gp_watch *w)
{
	if (w->fd >= 0)
		gp_loop_remove(l, w);
	w->fd = -1;
}

static void close_report(struct gp_attachment *a)
{
	int fd = a->report.fd;

	stop_watching(&a->manager->loop, &a->report);
	if (fd >= 0)
		close(fd);
	gp_alarm_cancel(&a->manager->loop, &a->patience);
}

/* The binder may still have the socket: it is of no use to anybody either. */
static void detach(struct gp_attachment *a)
{
	struct gp_manager *m = a->manager;

	close_report(a);
	stop_watching(&m->loop, &a->ended);
	stop_watching(&m->loop, &a->door.watch);
	if (a->door.listen.fd >= 0) {
		(void)shutdown(a->door.listen.fd, SHUT_RDWR);
		close(a->door.listen.fd);
	}
	gp_process_close(&a->process);
	gp_alarm_free(&m->loop, &a->patience);
	gp_list_remove(&a->all);
	m->nattachments--;
	free(a);
}

static void tell_asker(const struct gp_attachment *a, int status, const char *text)
{
	gp_list_each(pos, &a->manager->peers) {
		struct gp_peer *p = gp_container(pos, struct gp_peer, all);

		if (p->id != a->asker || p->dead)
			continue;
		if (status < 0)
			(void)gp_peer_error(p, a->serial, status, text);
		else
			gp_answer_done(p, a->serial);
	}
}

static void settled(struct gp_attachment *a, int status, const char *text)
{
	struct gp_manager *m = a->manager;

	close_report(a);
	if (status == 0)
		status = gp_manager_open_door(m, &a->door);
	if (status < 0 && !*text)
		text = "nobody can be heard by its socket";
	if (status == 0) {
		gp_log_about(GP_ABOUT_PROCESS(a->process.pid), "process %u is attached: its container is %s",
			     a->process.pid, class_of(a));
		save(m); /* who is told so may end us */
	} else {
		gp_log_about(GP_ABOUT_PROCESS(a->process.pid), "process %u is not attached: %s",
			     a->process.pid, text);
	}
	tell_asker(a, status, text);
	a->asker = 0;
	if (status < 0) {
		detach(a);
		save(m);
	}
}

static void reported(void *arg, uint32_t events)
{
	struct gp_attachment *a = arg;
	struct gp_binder_report report;

	(void)events;
	if (read(a->report.fd, &report, sizeof(report)) != (ssize_t)sizeof(report))
		report = (struct gp_binder_report){ .status = -ETIMEDOUT, .text = SILENT };
	memcpy(a->door.root, report.root, sizeof(report.root));
	settled(a, report.status, report.text);
}

static void lost_patience(void *arg)
{
	settled(arg, -ETIMEDOUT, SILENT);
}

static void process_ended(void *arg, uint32_t events)
{
	struct gp_attachment *a = arg;
	struct gp_manager *m = a->manager;

	(void)events;
	gp_log_about(GP_ABOUT_PROCESS(a->process.pid), "process %u, which was attached, has ended",
		     a->process.pid);
	tell_asker(a, -ESRCH, "it has ended");
	detach(a);
	save(m);
}

static int watch_both(struct gp_attachment *a)
{
	struct gp_loop *l = &a->manager->loop;
	int r = gp_loop_add(l, &a->report, EPOLLIN);

	if (r == 0 && a->process.is_pidfd) {
		a->ended.fd = a->process.fd;
		r = gp_loop_add(l, &a->ended, EPOLLIN);
	}
	if (r == 0)
		r = gp_alarm_init(l, &a->patience, lost_patience, a);
	if (r == 0)
		gp_alarm_in(l, &a->patience, PATIENCE_NS);
	return r;
}

static int begin(struct gp_attachment *a)
{
	int fd = gp_listen_socket(a->manager->conf->old_kernel);
	int r;

	if (fd < 0)
		return fd;
	a->door.listen.fd = fd;
	r = gp_binder_start(&a->process, fd, &fd);
	if (r < 0)
		return r;
	a->report.fd = fd;
	return watch_both(a);
}

static struct gp_attachment *new_one(struct gp_manager *m, uint32_t granted)
{
	struct gp_attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	*a = (struct gp_attachment){ .manager = m,
				     .door = { .listen = { .fd = -1, .lock = -1 },
					       .watch = { .fd = -1 },
					       .granted = granted,
					       .manager = m },
				     .process = GP_NO_PROCESS,
				     .ended = { .fd = -1, .fn = process_ended, .arg = a },
				     .report = { .fd = -1, .fn = reported, .arg = a } };
	gp_list_append(&m->attachments, &a->all);
	m->nattachments++;
	return a;
}

/* Before anything is bound in it: those who come from a user's namespace would be turned away. */
static int identify(struct gp_attachment *a)
{
	struct gp_identity id;
	int r = gp_process_identify(&a->process, &id);

	if (r < 0)
		return r;
	a->door.mount_ns = id.mount_ns;
	return gp_identity_is_made_by_root(&id) ? 0 : -EPERM;
}

/* start 0: whoever has the number. */
static int attach(struct gp_manager *m, const struct gp_msg_attach *asked, struct gp_attachment **ret)
{
	struct gp_attachment *a = new_one(m, asked->client_class);
	int r = a ? gp_process_open(asked->pid, &a->process) : -ENOMEM;

	if (r == 0) {
		a->start = gp_proc_start("", asked->pid);
		r = !a->start || (asked->start && asked->start != a->start) || !gp_process_lives(&a->process)
			    ? -ESRCH
			    : 0;
	}
	if (r == 0)
		r = identify(a);
	if (r == 0)
		r = begin(a);
	if (r == 0)
		*ret = a;
	else if (a)
		detach(a);
	return r;
}

/* What tools ask */

static bool may_attach(const struct gp_peer *p)
{
	return geteuid() == 0 && p->rights & GP_RIGHT_OTHERS && gp_identity_is_root(&p->identity) &&
	       gp_identity_is_local(&p->identity);
}

static struct gp_attachment *find(const struct gp_manager *m, const struct gp_msg_attach *asked)
{
	gp_list_each(pos, &m->attachments) {
		struct gp_attachment *a = of(pos);

		if (a->process.pid == asked->pid && (!asked->start || asked->start == a->start) &&
		    gp_process_lives(&a->process))
			return a;
	}
	return NULL;
}

/* Of one that is attached: who comes from now on is of that class. */
static int change(struct gp_attachment *a, uint32_t client_class, const char **ret_text)
{
	*ret_text = "it is being attached: ask again in a moment";
	if (a->report.fd >= 0)
		return -EBUSY;
	if (a->door.granted == client_class)
		return 0;
	a->door.granted = client_class;
	gp_log_about(GP_ABOUT_PROCESS(a->process.pid),
		     "process %u, which is attached: its container is %s from now on", a->process.pid,
		     class_of(a));
	save(a->manager);
	return 0;
}

static const char *text_of(int r)
{
	return r == -ESRCH ? "there is no such process, or it has ended"
	       : r == -EPERM
		       ? "its user namespace is a user's, not root's: programs there use everybody's socket, or "
			 "that user's own gpreemptd"
		       : strerror(-r);
}

void gp_attach_request(struct gp_manager *m, struct gp_peer *p, const struct gp_msg *msg)
{
	const char *text = "only root may attach containers, on the host itself, to root's gpreemptd";
	struct gp_attachment *a = find(m, &msg->attach);
	int r = may_attach(p) ? 0 : -EPERM;

	if (r == 0 && a) {
		r = change(a, msg->attach.client_class, &text);
		if (r == 0)
			gp_answer_done(p, msg->serial);
	} else if (r == 0 && m->nattachments >= MOST) {
		r = -ENOSPC;
		text = "64 containers are attached: there is room for no more";
	} else if (r == 0) {
		r = attach(m, &msg->attach, &a);
		text = text_of(r);
		if (r == 0) {
			a->asker = p->id;
			a->serial = msg->serial;
		}
	}
	if (r < 0)
		(void)gp_peer_error(p, msg->serial, r, text);
}

/* What the last gpreemptd had */

void gp_attach_again(struct gp_manager *m)
{
	char text[MOST * LINE + 1], name[8];
	struct gp_msg_attach one;
	struct gp_attachment *a;
	int r;

	if (geteuid() != 0)
		return;
	gp_kept_read(m->conf, KEPT, text, sizeof(text));
	for (const char *line = text; line && *line && m->nattachments < MOST; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%u %" SCNu64 " %7s", &one.pid, &one.start, name) != 3)
			continue;
		one.client_class = strcmp(name, "online") ? GP_CLASS_OFFLINE : GP_CLASS_ONLINE;
		r = attach(m, &one, &a);
		if (r < 0 && r != -ESRCH)
			gp_log_about(GP_ABOUT_PROCESS(one.pid), "process %u is not attached any more: %s",
				     one.pid, text_of(r));
	}
	if (text[0])
		save(m);
}

void gp_attach_look(struct gp_manager *m)
{
	gp_list_each_safe(pos, &m->attachments) {
		struct gp_attachment *a = of(pos);

		if (!gp_process_lives(&a->process))
			process_ended(a, 0);
		else if (a->door.watch.fd >= 0) /* -EEXIST, unless descriptors had run out */
			(void)gp_loop_add(&m->loop, &a->door.watch, EPOLLIN);
	}
}

void gp_attach_close(struct gp_manager *m)
{
	gp_list_each_safe(pos, &m->attachments)
		detach(of(pos));
}
