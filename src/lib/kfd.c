// SPDX-License-Identifier: MIT
/*
 * AMD's queues: a client of gpreemptd, which acts; without one, the list that the
 * machine's files give, and nothing can be done.
 *
 * What is suspended over a connection runs again when the connection ends, whoever
 * ended it and why: closing is all that is needed to fail open.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctx.h"
#include "lib/hints.h"
#include "lib/kfd.h"
#include "lib/link.h"
#include "lib/local.h"

#define SECOND 1000000000ull
/* Beside what a drain may take: the driver itself gives a device 9 s (queue_preemption_timeout_ms). */
#define STOP_NS (15 * SECOND)
/* More than that nobody waits for an event at a time. */
#define LONGEST_WAIT_NS (86400 * SECOND)

/* What people are told; that a program needs another context then is in libgpreempt(7). */
#define BY(verb) verb " it (systemctl " verb " gpreemptd, or gpreemptd as yourself)"
#define START BY("start")
#define RESTART BY("restart")
#define LOST "what it held for you runs again; " RESTART ", and try again"

struct kfd {
	struct gp_link *link;   /* NULL: no gpreemptd, or no more */
	struct gp_local *local; /* NULL: gpreemptd tells */
	struct gp_link *events; /* NULL: none are open */
	struct gp_hints *hints;
	struct gp_msg_error unheard; /* came while nobody asked; status 0: nothing did */
	uint64_t stop_ns;            /* patience with a stop */
	pid_t owner;
	int events_ended; /* 1: all that were asked for have come */
	char place[108];  /* the link's */
	char why[256];    /* there is no link */
};

static const char *named_place(const struct gp_open_opts *opts)
{
	return opts->socket ? opts->socket : secure_getenv("GPREEMPT_SOCKET");
}

/*
 * Where gpreemptd may be, in the order tried; how many there are.  Who names a place means it
 * alone; "" is nowhere.
 */
static size_t places(const struct gp_open_opts *opts, char user[108], const char *ret[2])
{
	const char *named = named_place(opts);
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

	ret[0] = named ? named : GP_WIRE_SOCKET;
	if (named)
		return *named ? 1 : 0;
	if (!runtime || snprintf(user, 108, "%s/" GP_WIRE_USER_SOCKET, runtime) >= 108)
		return 1;
	ret[1] = user;
	return 2;
}

/* Nobody listens. Whoever does and refuses, hangs or is not understood is there. */
static int is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ECONNREFUSED;
}

static int fail_daemon(struct gp_ctx *ctx, int r, const char *path, const char *refusal)
{
	if (r == -EKEYREJECTED)
		return gp_ctx_fail(ctx, r,
				   "the gpreemptd at %s is not to be trusted: %s; name another, or unset "
				   "GPREEMPT_SOCKET and XDG_RUNTIME_DIR",
				   path, refusal);
	if (refusal[0])
		return gp_ctx_fail(ctx, r, "gpreemptd at %s refuses: %s", path, refusal);
	if (r == -EACCES)
		return gp_ctx_fail(
			ctx, r,
			"gpreemptd's socket %s is closed to you (%s): ask who started it, or start "
			"your own and set GPREEMPT_SOCKET",
			path, gp_strerror(r));
	if (r == -EPROTO)
		return gp_ctx_fail(ctx, r, "gpreemptd at %s is of another version: restart it", path);
	if (r == -ETIMEDOUT)
		return gp_ctx_fail(ctx, r, "gpreemptd at %s does not answer: restart it", path);
	return gp_ctx_fail(ctx, r, "gpreemptd at %s cannot be reached: %s", path, gp_strerror(r));
}

/* In brackets, unless it is what everybody expects where nobody is. */
static const char *odd(int r, char text[64])
{
	text[0] = '\0';
	if (r != -ENOENT)
		(void)snprintf(text, 64, " (%s)", gp_strerror(r));
	return text;
}

#define ABSENT 1

/* r, if there is memory: hints go where the link goes, or where somebody may come to listen. */
static int prepare_hints(struct kfd *kfd, const char *const *where, size_t n, int r)
{
	if (gp_hints_new(where, n, &kfd->hints) < 0)
		return -ENOMEM;
	if (kfd->link)
		gp_hints_lend(kfd->hints, kfd->link->fd);
	return r;
}

static void say_absent(struct kfd *kfd, size_t i, const char *path, int r)
{
	size_t used = i ? strlen(kfd->why) : 0;
	char text[64];

	(void)snprintf(kfd->why + used, sizeof(kfd->why) - used, i ? ", nor at %s%s" : "no gpreemptd at %s%s",
		       path, odd(r, text));
}

/* 0, ABSENT with why, or the error of one that is there; of two places the first that serves us, else the
 * first that is there. */
static int find_daemon(struct gp_ctx *ctx, struct kfd *kfd, const struct gp_open_opts *opts)
{
	char user[108], refusal[192];
	const char *tried[2];
	size_t n = places(opts, user, tried);
	int one, r = ABSENT;

	(void)snprintf(kfd->why, sizeof(kfd->why), "gpreemptd was not asked");
	for (size_t i = 0; i < n; i++) {
		one = gp_link_open(tried[i], &kfd->link, refusal, sizeof(refusal));
		if (one == 0) {
			ctx->error[0] = '\0'; /* the other's */
			(void)snprintf(kfd->place, sizeof(kfd->place), "%s", tried[i]);
			return prepare_hints(kfd, &tried[i], 1, 0);
		}
		if (!is_absent(one) || refusal[0])
			r = r == ABSENT ? fail_daemon(ctx, one, tried[i], refusal) : r;
		else
			say_absent(kfd, i, tried[i], one);
	}
	return r == ABSENT ? prepare_hints(kfd, tried, n, r) : r;
}

static const char *recorded_tree(void)
{
	const char *root = secure_getenv("GPREEMPT_ROOT");

	return root && *root ? root : NULL;
}

/*
 * What to do comes first.  Who named a place means the gpreemptd there, and "" none.  NVIDIA's GPUs are seen
 * through it alone.
 */
static int fail_nothing(struct gp_ctx *ctx, const char *named, const char *why, int r)
{
	char text[64];

	if (access("/dev/nvidiactl", F_OK) == 0)
		return gp_ctx_fail(ctx, -ENODEV,
				   "%s: " START "; NVIDIA GPUs are reached through it; see gpreempt doctor",
				   why);
	if (named && !*named)
		return gp_ctx_fail(ctx, -ENODEV,
				   "no AMD GPU (no /dev/kfd%s: modprobe amdgpu), and %s; see gpreempt doctor",
				   odd(r, text), why);
	return gp_ctx_fail(ctx, -ENODEV,
			   "%s: %s; no AMD GPU either (no /dev/kfd%s: modprobe amdgpu); see gpreempt doctor",
			   why, named ? "start it, or name its socket (GPREEMPT_SOCKET)" : START,
			   odd(r, text));
}

static int open_local(struct gp_ctx *ctx, struct kfd *kfd, const char *root, const char *named)
{
	char error[256];
	int r;

	if (!root && access("/dev/kfd", F_OK) < 0)
		return fail_nothing(ctx, named, kfd->why, -errno);
	r = gp_local_new(root, error, sizeof(error), &kfd->local);
	if (r < 0)
		return r;
	if (error[0])
		gp_ctx_note(ctx, "%s", error);
	else if (!root)
		gp_ctx_note(ctx, "%s: queues are listed, and none can be suspended", kfd->why);
	return 0;
}

static struct kfd *kfd_of(const struct gp_ctx *ctx)
{
	return ctx->data;
}

static void free_kfd(struct kfd *kfd)
{
	gp_hints_free(kfd->hints);
	gp_link_close(kfd->events);
	gp_link_close(kfd->link);
	gp_local_free(kfd->local);
	free(kfd);
}

static int kfd_open(struct gp_ctx *ctx, const struct gp_open_opts *opts)
{
	const char *root = recorded_tree();
	struct kfd *kfd = calloc(1, sizeof(*kfd));
	int r;

	if (!kfd)
		return -ENOMEM;
	kfd->owner = getpid();
	kfd->stop_ns = STOP_NS;
	if (root)
		(void)snprintf(kfd->why, sizeof(kfd->why), "%s is a recorded tree (GPREEMPT_ROOT)", root);
	r = root ? prepare_hints(kfd, NULL, 0, ABSENT) : find_daemon(ctx, kfd, opts);
	if (r == ABSENT)
		r = open_local(ctx, kfd, root, named_place(opts));
	if (r < 0)
		free_kfd(kfd);
	else
		ctx->data = kfd;
	return r;
}

static void kfd_close(struct gp_ctx *ctx)
{
	free_kfd(kfd_of(ctx));
}

void gp_kfd_set_patience(struct gp_ctx *ctx, uint64_t answer_ns, uint64_t stop_ns)
{
	struct kfd *kfd = kfd_of(ctx);

	kfd->link->patience_ns = answer_ns;
	kfd->stop_ns = stop_ns;
}

/* A context is its process's: two that ask over one connection get each other's answers. */
static int check_owner(struct gp_ctx *ctx)
{
	const struct kfd *kfd = kfd_of(ctx);

	if (kfd->owner == getpid())
		return 0;
	return gp_ctx_fail(ctx, -EPERM,
			   "process %d opened this context: after fork() close it and open another",
			   (int)kfd->owner);
}

/* Before anything that only gpreemptd can do. */
static int need_link(struct gp_ctx *ctx)
{
	const struct kfd *kfd = kfd_of(ctx);
	int r = check_owner(ctx);

	if (r < 0 || kfd->link)
		return r;
	if (!kfd->local)
		return gp_ctx_fail(ctx, -ECONNRESET, "%s: " LOST, kfd->why);
	return gp_ctx_fail(ctx, -ENODEV, "%s: " START, kfd->why);
}

static int kfd_rights(struct gp_ctx *ctx, uint32_t *ret)
{
	int r = need_link(ctx);

	if (r < 0)
		return r;
	*ret = kfd_of(ctx)->link->rights;
	return 0;
}

static const char *why_lost(int r)
{
	return r == -ETIMEDOUT    ? "gpreemptd does not answer"
	       : r == -ECONNRESET ? "gpreemptd has gone"
	       : r == -EPROTO     ? "gpreemptd is of another version"
				  : "gpreemptd does not speak our protocol";
}

/* The connection is of no more use; its end resumes what was held over it. */
static int lose(struct gp_ctx *ctx, int r)
{
	struct kfd *kfd = kfd_of(ctx);

	gp_hints_lend(kfd->hints, -1);
	gp_link_close(kfd->link);
	kfd->link = NULL;
	(void)snprintf(kfd->why, sizeof(kfd->why), "%s", why_lost(r));
	return gp_ctx_fail(ctx, r, "%s (%s): " LOST, kfd->why, gp_strerror(r));
}

/* What gpreemptd refused, in its words. */
static int refused(struct gp_ctx *ctx, const struct gp_msg_error *e)
{
	return gp_ctx_fail(ctx, e->status, "gpreemptd: %s", e->text[0] ? e->text : gp_strerror(e->status));
}

/* The next answer. */
static int hear(struct gp_ctx *ctx, uint64_t timeout_ns)
{
	struct gp_link *link = kfd_of(ctx)->link;
	int r = gp_link_answer(link, timeout_ns);

	if (r < 0)
		return lose(ctx, r);
	return link->msg.type == GP_MSG_ERROR ? refused(ctx, &link->msg.error) : 0;
}

/* Asks, and waits for the first answer. */
static int ask(struct gp_ctx *ctx, uint64_t timeout_ns)
{
	struct kfd *kfd = kfd_of(ctx);
	int r;

	if (kfd->unheard.status) {
		r = refused(ctx, &kfd->unheard);
		kfd->unheard.status = 0;
		return r;
	}
	r = gp_link_ask(kfd->link);
	return r < 0 ? lose(ctx, r) : hear(ctx, timeout_ns);
}

/* gpreemptd's answer to the first hint, which nobody waited for. What fails here the next question tells. */
static void kfd_look(struct gp_ctx *ctx)
{
	struct kfd *kfd = kfd_of(ctx);
	struct gp_link *link = kfd->link;

	if (!link || kfd->owner != getpid())
		return;
	if (gp_link_answer(link, 0) == 0 && link->msg.type == GP_MSG_ERROR)
		kfd->unheard = link->msg.error; /* why it hangs up: the next call tells it */
	if (!link->about_hint.status)
		return;
	gp_ctx_note(ctx, "hints of this process count for nothing: %s", link->about_hint.text);
	link->about_hint.status = 0;
}

/* An array that grows. */
struct pile {
	char *items;
	size_t n, room, size;
};

static int pile_add(struct pile *p, const void *item)
{
	char *more = p->items;

	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 16;
		more = realloc(p->items, p->room * p->size);
	}
	if (!more)
		return -ENOMEM;
	p->items = more;
	memcpy(p->items + p->n++ * p->size, item, p->size);
	return 0;
}

/* All answers of one type; the others are passed over. */
static int collect(struct gp_ctx *ctx, uint32_t question, uint32_t type, struct pile *pile)
{
	struct gp_link *link = kfd_of(ctx)->link;
	uint64_t patience = link->patience_ns;
	int r;

	gp_link_begin(link, question);
	for (r = ask(ctx, patience); r == 0 && link->msg.type != GP_MSG_END; r = hear(ctx, patience))
		if (link->msg.type == type && pile_add(pile, &link->msg.device) < 0)
			return lose(ctx, -ENOMEM); /* the rest of the list would answer the next question */
	return r;
}

static int list_from_daemon(struct gp_ctx *ctx, uint32_t question, uint32_t type, size_t size, void **ret)
{
	struct pile pile = { .size = size };
	int r = need_link(ctx);

	if (r == 0)
		r = collect(ctx, question, type, &pile);
	if (r < 0) {
		free(pile.items);
		return r;
	}
	*ret = pile.items;
	return (int)pile.n;
}

static int kfd_devices(struct gp_ctx *ctx, struct gp_device_info **ret)
{
	struct kfd *kfd = kfd_of(ctx);
	void *all = NULL;
	int r;

	if (kfd->local)
		return gp_local_devices(kfd->local, ret);
	r = list_from_daemon(ctx, GP_MSG_LIST, GP_MSG_DEVICE, sizeof(**ret), &all);
	if (r >= 0)
		*ret = all;
	return r;
}

static int kfd_queues(struct gp_ctx *ctx, struct gp_queue_info **ret)
{
	struct kfd *kfd = kfd_of(ctx);
	void *all = NULL;
	int r;

	if (kfd->local)
		return gp_local_queues(kfd->local, ret);
	r = list_from_daemon(ctx, GP_MSG_LIST, GP_MSG_QUEUE_INFO, sizeof(**ret), &all);
	if (r >= 0)
		*ret = all;
	return r;
}

static int kfd_clients(struct gp_ctx *ctx, struct gp_client_info **ret)
{
	void *all = NULL;
	int r = list_from_daemon(ctx, GP_MSG_CLIENTS, GP_MSG_CLIENT_INFO, sizeof(**ret), &all);

	if (r >= 0)
		*ret = all;
	return r;
}

/* The first error of a RESULT, with what gpreemptd says to it; statuses to the caller. */
static int read_result(struct gp_ctx *ctx, const uint64_t *queues, size_t n, const char *what,
		       int32_t *status)
{
	const struct gp_msg *msg = &kfd_of(ctx)->link->msg;
	int r = 0;

	if (msg->type != GP_MSG_RESULT || msg->items.n != n)
		return lose(ctx, -EBADMSG);
	for (size_t i = 0; i < n; i++) {
		int one = msg->item[i].status;

		if (msg->item[i].queue != queues[i] || one > 0)
			return lose(ctx, -EBADMSG);
		if (status)
			status[i] = one;
		if (one < 0 && r == 0)
			r = gp_ctx_fail(ctx, one, "queue %" PRIu64 " cannot be %s: %s", queues[i], what,
					msg->items.text[0] ? msg->items.text : gp_strerror(one));
	}
	if (r == 0 && msg->items.text[0])
		gp_ctx_note(ctx, "%s", msg->items.text);
	return r;
}

static void fill_status(int32_t *status, size_t n, int r)
{
	for (size_t i = 0; status && i < n; i++)
		status[i] = r;
}

/* One message's worth. head is what goes before the items. */
static int send_some(struct gp_ctx *ctx, const struct gp_msg_items *head, uint32_t type,
		     const uint64_t *queues, size_t n, int32_t *status)
{
	struct gp_link *link = kfd_of(ctx)->link;
	int r;

	gp_link_begin(link, type);
	link->msg.items = *head;
	link->msg.items.n = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		link->msg.item[i] = (struct gp_wire_item){ .queue = queues[i],
							   .want = type == GP_MSG_HOLD ? GP_STOP : GP_RUN };
	r = ask(ctx, link->patience_ns + kfd_of(ctx)->stop_ns + head->timeout_ns);
	if (r == 0)
		return read_result(ctx, queues, n, type == GP_MSG_HOLD ? "suspended" : "resumed", status);
	fill_status(status, n, r);
	return r;
}

/* Any number of queues: as many messages as it takes. The first error's sentence is kept. */
static int send_all(struct gp_ctx *ctx, const struct gp_msg_items *head, uint32_t type,
		    const uint64_t *queues, size_t n, int32_t *status)
{
	char error[sizeof(ctx->error)];
	int one = 0, r = need_link(ctx);
	size_t some;

	if (r < 0) {
		fill_status(status, n, r);
		return r;
	}
	for (size_t done = 0; done < n && kfd_of(ctx)->link; done += some) {
		some = n - done < GP_WIRE_MOST_ITEMS ? n - done : GP_WIRE_MOST_ITEMS;
		one = send_some(ctx, head, type, queues + done, some, status ? status + done : NULL);
		if (one < 0 && r == 0) {
			memcpy(error, ctx->error, sizeof(error));
			r = one;
		}
	}
	if (!kfd_of(ctx)->link) { /* what was done before ended with the connection */
		fill_status(status, n, one);
		return one;
	}
	if (r < 0)
		memcpy(ctx->error, error, sizeof(error));
	return r;
}

/* Where there is no gpreemptd. -ENODEV: it takes one. */
static int set_alone(struct gp_ctx *ctx, const uint64_t *queues, size_t n, uint32_t want, int32_t *status)
{
	char why[256];
	int r = check_owner(ctx);

	if (r < 0)
		return r;
	r = gp_local_set(kfd_of(ctx)->local, queues, n, want, status, why, sizeof(why));
	return r < 0 && r != -ENODEV ? gp_ctx_fail(ctx, r, "%s", why) : r;
}

/* Leases, drains and queues to come are gpreemptd's. */
static int is_plain(const struct gp_suspend_opts *opts)
{
	return !opts->lease_ns && !opts->flags && opts->type == GP_PREEMPT_SAVE &&
	       (!opts->way || !strcmp(opts->way, "auto") || !strcmp(opts->way, "session"));
}

static int kfd_suspend(struct gp_ctx *ctx, const uint64_t *queues, size_t n,
		       const struct gp_suspend_opts *opts, int32_t *status)
{
	struct gp_msg_items head = { .lease_ns = opts->lease_ns,
				     .timeout_ns = opts->timeout_ns,
				     .type = opts->type,
				     .hold = opts->flags & GP_SUSPEND_NEW_QUEUES ? GP_HOLD_NEW_QUEUES : 0 };
	int r;

	if (opts->flags & GP_SUSPEND_STRICT)
		head.hold |= GP_HOLD_STRICT;
	if (opts->way && gp_way_by_name(opts->way, &head.way) < 0)
		return gp_ctx_fail(
			ctx, -EINVAL,
			"there is no way \"%s\"; there are auto, session, update, park, dbg and private",
			opts->way);
	if (opts->type == GP_PREEMPT_DRAIN && !head.timeout_ns)
		head.timeout_ns = GP_DEFAULT_TIMEOUT_NS;
	r = kfd_of(ctx)->local && is_plain(opts) ? set_alone(ctx, queues, n, GP_STOP, status) : -ENODEV;
	if (r != -ENODEV)
		return r;
	return send_all(ctx, &head, GP_MSG_HOLD, queues, n, status);
}

static int kfd_resume(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *status)
{
	const struct gp_msg_items head = { 0 };
	int r = kfd_of(ctx)->local ? set_alone(ctx, queues, n, GP_RUN, status) : -ENODEV;

	if (r != -ENODEV)
		return r;
	return send_all(ctx, &head, GP_MSG_RELEASE, queues, n, status);
}

/* What link->msg asks for is done, or not. */
static int ask_for_result(struct gp_ctx *ctx, const char *what)
{
	int r = ask(ctx, kfd_of(ctx)->link->patience_ns + kfd_of(ctx)->stop_ns);

	return r < 0 ? r : read_result(ctx, NULL, 0, what, NULL);
}

static int kfd_reserve(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent, uint32_t offline_percent)
{
	struct gp_link *link;
	int r = need_link(ctx);

	if (r < 0)
		return r;
	if (online_percent > 100 || offline_percent > 100 || online_percent + offline_percent > 100)
		return gp_ctx_fail(ctx, -EINVAL, "online and offline are percentages, together at most 100");
	link = kfd_of(ctx)->link;
	gp_link_begin(link, GP_MSG_RESERVE);
	link->msg.reserve = (struct gp_msg_reserve){ device, online_percent, offline_percent };
	return ask_for_result(ctx, "reserved");
}

static int kfd_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name)
{
	struct gp_link *link;
	int r = need_link(ctx);

	if (r < 0)
		return r;
	link = kfd_of(ctx)->link;
	gp_link_begin(link, GP_MSG_POLICY);
	link->msg.policy.device = device;
	(void)snprintf(link->msg.policy.name, sizeof(link->msg.policy.name), "%s", name);
	return ask_for_result(ctx, "scheduled");
}

static int kfd_attach(struct gp_ctx *ctx, uint32_t pid, uint64_t start, uint32_t client_class)
{
	struct gp_link *link;
	int r = need_link(ctx);

	if (r < 0)
		return r;
	link = kfd_of(ctx)->link;
	if (!(link->features & GP_FEATURE_ATTACH)) /* it would not answer */
		return gp_ctx_fail(ctx, -ENOTSUP, "this gpreemptd is older than attach: " RESTART);
	gp_link_begin(link, GP_MSG_ATTACH);
	link->msg.attach = (struct gp_msg_attach){ pid, client_class, start };
	return ask_for_result(ctx, "attached");
}

/* It would not answer. */
static int need_jobs(struct gp_ctx *ctx)
{
	int r = need_link(ctx);

	if (r == 0 && !(kfd_of(ctx)->link->features & GP_FEATURE_JOBS))
		return gp_ctx_fail(ctx, -ENOTSUP, "this gpreemptd is older than jobs: " RESTART);
	return r;
}

static int kfd_declare(struct gp_ctx *ctx, const struct gp_job *job)
{
	struct gp_msg_job *msg;
	int r = need_jobs(ctx);

	if (r < 0)
		return r;
	gp_link_begin(kfd_of(ctx)->link, GP_MSG_JOB);
	msg = &kfd_of(ctx)->link->msg.job;
	*msg = (struct gp_msg_job){ .pid = job->pid,
				    .client_class = job->client_class,
				    .start = job->start,
				    .slo_ns = job->slo_ns,
				    .weight = job->weight,
				    .floor_permille = job->floor_permille,
				    .patience_ns = job->patience_ns };
	(void)snprintf(msg->name, sizeof(msg->name), "%s", job->name);
	(void)snprintf(msg->cgroup, sizeof(msg->cgroup), "%s", job->cgroup ? job->cgroup : "");
	return ask_for_result(ctx, "declared");
}

static int kfd_jobs(struct gp_ctx *ctx, struct gp_job_info **ret)
{
	void *all = NULL;
	int r = need_jobs(ctx);

	if (r == 0)
		r = list_from_daemon(ctx, GP_MSG_JOBS, GP_MSG_JOB_INFO, sizeof(**ret), &all);
	if (r >= 0)
		*ret = all;
	return r;
}

static int kfd_stats(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret)
{
	struct gp_link *link;
	int r = need_link(ctx);

	if (r < 0)
		return r;
	link = kfd_of(ctx)->link;
	gp_link_begin(link, GP_MSG_STATS);
	link->msg.stats.device = device;
	r = ask(ctx, link->patience_ns);
	if (r < 0)
		return r;
	if (link->msg.type != GP_MSG_STATS_INFO || link->msg.stats_info.device != device)
		return lose(ctx, -EBADMSG);
	*ret = link->msg.stats_info;
	return 0;
}

static int hint_and_wait(struct gp_ctx *ctx, const struct gp_msg_hint *hint)
{
	int r = need_link(ctx);

	if (r < 0)
		return r;
	gp_link_begin(kfd_of(ctx)->link, GP_MSG_HINT);
	kfd_of(ctx)->link->msg.hint = *hint;
	return ask_for_result(ctx, "hinted");
}

/* Any thread may be here, unless an answer is wanted. */
static int kfd_hint(struct gp_ctx *ctx, const struct gp_hint *hint, uint32_t what)
{
	const struct gp_msg_hint msg = { .client = hint->client,
					 .number = hint->number,
					 .expiry_ns = hint->expiry_ns,
					 .what = what,
					 .device = hint->device };
	const struct kfd *kfd = kfd_of(ctx);

	if (hint->flags & GP_HINT_ANSWER)
		return hint_and_wait(ctx, &msg);
	return kfd->owner == getpid() ? gp_hints_send(kfd->hints, &msg) : -EPERM;
}

static void close_events(struct kfd *kfd)
{
	gp_link_close(kfd->events);
	kfd->events = NULL;
}

static int lose_events(struct gp_ctx *ctx, int r)
{
	close_events(kfd_of(ctx));
	return gp_ctx_fail(ctx, r, "%s (%s): no more events come; " RESTART, why_lost(r), gp_strerror(r));
}

static int kfd_event_open(struct gp_ctx *ctx, const struct gp_event_opts *opts)
{
	struct kfd *kfd = kfd_of(ctx);
	char refusal[192];
	int r = kfd->local ? need_link(ctx) : check_owner(ctx);

	if (r < 0)
		return r;
	close_events(kfd);
	kfd->events_ended = 0;
	r = gp_link_open(kfd->place, &kfd->events, refusal, sizeof(refusal));
	if (r < 0)
		return fail_daemon(ctx, r, kfd->place, refusal);
	if (opts->flags & GP_EVENT_NEW && !(kfd->events->features & GP_FEATURE_NEW_EVENTS)) {
		close_events(kfd);
		return gp_ctx_fail(ctx, -ENOTSUP,
				   "this gpreemptd tells of new events after the kept ones alone");
	}
	gp_link_begin(kfd->events, GP_MSG_EVENTS);
	kfd->events->msg.events.follow = (opts->flags & GP_EVENT_FOLLOW) != 0;
	kfd->events->msg.events.kinds = opts->kinds;
	kfd->events->msg.events.only_new = (opts->flags & GP_EVENT_NEW) != 0;
	r = gp_link_ask(kfd->events);
	return r < 0 ? lose_events(ctx, r) : 0;
}

/* What came, as gp_event_next() returns it. */
static int take_event(struct gp_ctx *ctx, struct gp_event *ret)
{
	struct kfd *kfd = kfd_of(ctx);
	const struct gp_msg *msg = &kfd->events->msg;
	int r;

	if (msg->type == GP_MSG_EVENT) {
		*ret = msg->event;
		return 1;
	}
	if (msg->type == GP_MSG_ERROR) {
		r = refused(ctx, &msg->error);
		close_events(kfd);
		return r;
	}
	if (msg->type != GP_MSG_END)
		return lose_events(ctx, -EBADMSG);
	close_events(kfd);
	kfd->events_ended = 1;
	return 0;
}

static int kfd_event_next(struct gp_ctx *ctx, uint64_t timeout_ns, struct gp_event *ret)
{
	struct kfd *kfd = kfd_of(ctx);
	int r = check_owner(ctx);

	if (r < 0 || kfd->events_ended)
		return r;
	if (!kfd->events)
		return gp_ctx_fail(ctx, -ENOTCONN, "no events are open: gp_event_open() is first");
	r = gp_link_answer(kfd->events, timeout_ns < LONGEST_WAIT_NS ? timeout_ns : LONGEST_WAIT_NS);
	if (r == -ETIMEDOUT)
		return 0;
	return r < 0 ? lose_events(ctx, r) : take_event(ctx, ret);
}

static int kfd_set_class(struct gp_ctx *ctx, uint64_t client, uint32_t client_class)
{
	struct gp_link *link;
	int r = need_link(ctx);

	if (r < 0)
		return r;
	link = kfd_of(ctx)->link;
	if (!(link->features & GP_FEATURE_CLASS)) /* it would not answer */
		return gp_ctx_fail(ctx, -ENOTSUP,
				   "this gpreemptd is older than changes of a class: " RESTART);
	gp_link_begin(link, GP_MSG_CLASS);
	link->msg.class = (struct gp_msg_class){ client, client_class };
	return ask_for_result(ctx, "changed");
}

const struct gp_lib_ops gp_lib_kfd = {
	.name = "kfd",
	.open = kfd_open,
	.close = kfd_close,
	.rights = kfd_rights,
	.look = kfd_look,
	.devices = kfd_devices,
	.queues = kfd_queues,
	.clients = kfd_clients,
	.suspend = kfd_suspend,
	.resume = kfd_resume,
	.reserve = kfd_reserve,
	.attach = kfd_attach,
	.declare = kfd_declare,
	.jobs = kfd_jobs,
	.stats = kfd_stats,
	.set_policy = kfd_set_policy,
	.hint = kfd_hint,
	.event_open = kfd_event_open,
	.event_next = kfd_event_next,
	.set_class = kfd_set_class,
};
