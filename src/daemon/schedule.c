// SPDX-License-Identifier: MIT
/* The world as the scheduler sees it, and what it says has become of a queue. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/registry.h"
#include "base/event_words.h"
#include "daemon/hang.h"
#include "daemon/log.h"
#include "daemon/manager.h"
#include "policy/registry.h"

/* One device for all queues whose GPU nobody knows: there they can be held, and nobody is stopped for
 * another. */
#define UNKNOWN_DEVICE GP_NO_DEVICE
#define DEFAULT_WEIGHT 100
#define JOURNAL_NS (60 * GP_S) /* between two entries that say the same of a client */
#define CAPS (GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS | GP_CORE_OVERTAKES)

/* What came of it */

/* A session's queues share its cycles. */
static void count_change(struct gp_manager *m, const struct gp_queue *q, const struct gp_core_note *note)
{
	if (q->route.way == GP_KFD_WAY_SESSION && note->status == 0 && !note->unasked)
		m->sessions.of[q->route.device].changes++;
}

static void stopped(struct gp_manager *m, struct gp_queue *q, const struct gp_core_note *note)
{
	if (note->status == 0)
		gp_queue_note_active(q, 0);
	else if (q->parked && note->status != -ESRCH) /* else its hold waits for the agent */
		gp_reserve_failed(m, q);
	gp_request_ended(q, GP_STOP, note->status, note->latency_ns);
}

static void runs(struct gp_manager *m, struct gp_queue *q, const struct gp_core_note *note)
{
	if (note->status == 0)
		gp_queue_note_active(q, !q->agent.peer || q->agent.told.percent);
	else if (!q->cannot_resume)
		gp_account_log(
			gp_queue_account(q), m->loop.now_ns, GP_ABOUT_QUEUE(q),
			"cannot resume queue %llu of process %u (%s): %s; it is tried again, every second at last",
			(unsigned long long)q->handle, q->client->pid, q->client->name,
			strerror(-note->status));
	q->cannot_resume = note->status < 0;
	if (q->cannot_resume)
		gp_route_say(&q->route, "cannot resume: %s; it is tried again, every second at last",
			     strerror(-note->status));
	gp_request_ended(q, GP_RUN, note->status, note->latency_ns);
	if (q->cannot_resume && gp_schedule_status(m, q).wanted == GP_STOP)
		gp_request_ended(q, GP_STOP, 0, 0); /* it stands still, as somebody wants by now */
}

/* What of it goes into the record. */
static int event_kind(const struct gp_core_note *note)
{
	switch (note->kind) {
	case GP_NOTE_STOPPED:
		return note->status < 0 ? GP_EVENT_FAILED : GP_EVENT_SUSPEND;
	case GP_NOTE_RUNS:
		if (note->status == 0 && note->ran)
			return -1; /* into the background, or out of it */
		return note->status < 0 ? GP_EVENT_FAILED : note->unasked ? GP_EVENT_LEASE : GP_EVENT_RESUME;
	case GP_NOTE_HOLD_ENDED:
		return note->unasked ? GP_EVENT_LEASE : -1;
	case GP_NOTE_PUT_OFF:
		return GP_EVENT_BACKOFF;
	case GP_NOTE_STARVED:
		return GP_EVENT_STARVED;
	case GP_NOTE_NO_YIELD:
	case GP_NOTE_NO_STOP:
		return GP_EVENT_FAILED;
	case GP_NOTE_POLICY_EJECTED:
		return GP_EVENT_EJECTED;
	default:
		return -1;
	}
}

static struct gp_account *account_of(const struct gp_queue *q, const struct gp_client *c)
{
	if (q)
		return gp_queue_account(q);
	return c && c->agent ? c->agent->account : NULL;
}

static bool is_a_while_ago(uint64_t *last_ns, uint64_t now_ns)
{
	if (*last_ns && now_ns - *last_ns < JOURNAL_NS)
		return false;
	*last_ns = now_ns;
	return true;
}

/* What goes on is told once in a while, and a resume that is tried again and again once. */
static bool is_news(const struct gp_manager *m, const struct gp_queue *q, struct gp_client *c,
		    const struct gp_core_note *note)
{
	if (note->kind == GP_NOTE_PUT_OFF)
		return !c || is_a_while_ago(&c->put_off_ns, m->loop.now_ns);
	if (note->kind == GP_NOTE_STARVED)
		return !c || is_a_while_ago(&c->starved_ns, m->loop.now_ns);
	return note->kind != GP_NOTE_RUNS || !q || !q->cannot_resume;
}

/* Events that have no line of their own; there they can be looked for by their fields, long after. */
static const struct {
	const char *event, *text;
} journaled[GP_EVENT_LOST] = {
	[GP_EVENT_FAILED] = { "failed", "failed" },
	[GP_EVENT_BACKOFF] = { "backoff", "stops are put off" },
	[GP_EVENT_LEASE] = { "lease", "a lease ended, and with it a suspension" },
	[GP_EVENT_STARVED] = { "starved", "it had waited too long, and has a slice" },
};

static void journal(struct gp_manager *m, struct gp_account *account, const struct gp_happened *what)
{
	const struct gp_about about = { .event = journaled[what->kind].event,
					.number = m->events.last,
					.name = what->name,
					.pid = what->pid,
					.has_device = what->device != GP_NO_DEVICE,
					.device = what->device,
					.queue = what->queue,
					.latency_ns = what->latency_ns,
					.way = what->way ? gp_way_name(what->way) : NULL,
					.tried = gp_tried_word(what->tried),
					.status = what->status,
					.is_warning = what->kind == GP_EVENT_FAILED };
	const char *why = what->text && *what->text ? what->text
			  : what->status            ? strerror(-what->status)
						    : "";
	const char *tried = about.tried ? about.tried : "";

	gp_account_log(account, m->loop.now_ns, &about, "process %u (%s): %s%s%s%s%s", what->pid,
		       what->name ? what->name : "?", tried, *tried ? " " : "", journaled[what->kind].text,
		       *why ? ": " : "", why);
}

static void record(struct gp_manager *m, const struct gp_queue *q, const struct gp_core_note *note)
{
	int kind = event_kind(note);
	struct gp_client *c = q ? q->client : gp_world_client_by_handle(&m->world, note->client);
	const struct gp_happened what = { .kind = (uint32_t)kind,
					  .device = note->device,
					  .client = note->client,
					  .queue = note->queue,
					  .latency_ns = note->latency_ns,
					  .pid = c ? c->pid : 0,
					  .tried = note->tried,
					  .way = q ? q->route.way : 0,
					  .status = note->status,
					  .name = c ? c->name : NULL,
					  .text = note->text ? note->text
						  : q        ? gp_route_why(&q->route)
							     : NULL };

	if (kind < 0)
		return;
	gp_events_add(&m->events, &what);
	if (gp_log_has_fields() && journaled[kind].event && is_news(m, q, c, note))
		journal(m, account_of(q, c), &what);
}

static void queue_note(struct gp_manager *m, struct gp_queue *q, const struct gp_core_note *note)
{
	switch (note->kind) {
	case GP_NOTE_STOPPED:
		count_change(m, q, note);
		stopped(m, q, note);
		gp_proxy_used(m, q->client); /* or not any more */
		break;
	case GP_NOTE_RUNS:
		count_change(m, q, note);
		runs(m, q, note);
		gp_proxy_used(m, q->client);
		break;
	case GP_NOTE_HELD:
		m->reserves_changed = true;
		gp_request_ended(q, GP_RUN, 0, 0); /* it was let go, and somebody else wants it still */
		break;
	case GP_NOTE_HOLD_ENDED:
		m->reserves_changed = true;
		gp_reserve_park(m, q, false);
		gp_request_ended(q, GP_STOP, -ECANCELED, 0);
		break;
	default:
		break;
	}
}

static void name(void *arg, uint64_t client, char *text, size_t size)
{
	const struct gp_client *c = gp_world_client_by_handle(&((struct gp_manager *)arg)->world, client);

	if (c)
		snprintf(text, size, "%s %u", c->name[0] ? c->name : "process", c->pid);
}

static void note(void *arg, const struct gp_core_note *note)
{
	struct gp_manager *m = arg;
	struct gp_queue *q = note->queue ? gp_world_queue(&m->world, note->queue) : NULL;

	if (note->kind == GP_NOTE_REQUEST)
		gp_jobs_request(m, note->client, note->latency_ns);
	m->policies_changed |= note->kind == GP_NOTE_POLICY_EJECTED;
	record(m, q, note);
	if (note->kind == GP_NOTE_POLICY_EJECTED)
		gp_log_about(&(struct gp_about){ .event = "ejected",
						 .number = m->events.last,
						 .has_device = 1,
						 .device = note->device,
						 .is_warning = 1 },
			     "device %u: %s; fifo goes on", note->device, note->text);
	if (q)
		queue_note(m, q, note);
}

void gp_schedule_came_or_went(struct gp_manager *m, const struct gp_client *c, uint32_t kind)
{
	gp_events_add(&m->events, &(struct gp_happened){ .kind = kind,
							 .device = GP_NO_DEVICE,
							 .client = c->handle,
							 .pid = c->pid,
							 .name = c->name });
}

/* Devices */

static const char *policy_of(const struct gp_conf *conf, uint32_t device)
{
	for (uint32_t i = 0; i < conf->ndevices; i++)
		if (conf->devices[i].device == device)
			return conf->devices[i].policy;
	return conf->policy;
}

static int set_policy(struct gp_manager *m, uint32_t device, const char *name)
{
	int r = gp_core_set_policy(m->core, device, gp_policy_find(name), m->loop.now_ns);

	m->policies_changed = true;
	if (r < 0 && r != -ENOENT)
		gp_log_about(GP_ABOUT_DEVICE(device), "device %u: policy %s cannot be used: %s", device, name,
			     strerror(-r));
	return r;
}

static uint32_t caps_of(const struct gp_manager *m, uint32_t device)
{
	return CAPS | m->world.devices.by_number[device]->caps | gp_sessions_caps(m, device) |
	       (gp_settings_background(m, device) ? GP_CAP_BACKGROUND : 0) |
	       (m->world.devices.by_number[device]->is_simulated ? GP_CORE_APART : 0);
}

void gp_schedule_caps(struct gp_manager *m, uint32_t device)
{
	(void)gp_core_device_caps(m->core, device, caps_of(m, device));
}

void gp_schedule_policy_chosen(struct gp_manager *m, uint32_t device, const char *text)
{
	gp_events_add(&m->events,
		      &(struct gp_happened){ .kind = GP_EVENT_POLICY, .device = device, .text = text });
}

static void add_device(struct gp_manager *m, uint32_t device)
{
	if (gp_core_device_add(m->core, device, caps_of(m, device)) == 0)
		(void)set_policy(m, device, m->is_wary ? "fifo" : policy_of(m->conf, device));
}

/* Another may have its number next. */
static void forget_device(struct gp_manager *m, uint32_t device)
{
	memset(&m->reserves[device], 0, sizeof(m->reserves[device]));
	memset(&m->slices[device], 0, sizeof(m->slices[device]));
	(void)gp_core_device_remove(m->core, device, m->loop.now_ns);
}

void gp_schedule_devices(struct gp_manager *m)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		const struct gp_device *device = gp_devices_at(&m->world.devices, i);

		if (device)
			add_device(m, i);
		else if (m->world.devices.by_number[i] && m->world.devices.by_number[i]->is_simulated)
			forget_device(m, i);
	}
}

/* A policy that was changed by hand stays, unless the file says something new. */
void gp_schedule_reload(struct gp_manager *m)
{
	char text[64];

	gp_core_change_opts(m->core, &m->conf->core);
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		const char *name = policy_of(m->conf, i);

		if (strcmp(name, m->policies[i]) != 0) {
			m->is_wary = false; /* somebody has looked at it */
			snprintf(text, sizeof(text), "%s, by the configuration", name);
			if (set_policy(m, i, name) == 0)
				gp_schedule_policy_chosen(m, i, text);
		}
		snprintf(m->policies[i], sizeof(m->policies[i]), "%s", name);
	}
	gp_list_each(pos, &m->world.all_queues)
		(void)gp_schedule_queue(m, gp_container(pos, struct gp_queue, all));
}

/* The core's number of a queue's device. */
static uint32_t device_of(struct gp_manager *m, const struct gp_queue *q)
{
	struct gp_core_status status;
	uint32_t device = gp_queue_device(&m->world, q);

	return gp_core_device_status(m->core, device, &status) == 0 ? device : UNKNOWN_DEVICE;
}

/* Clients and queues */

static struct gp_core_client describe(struct gp_manager *m, struct gp_client *c)
{
	uint32_t weight = gp_job_weight(c);

	gp_verdict_of_client(m, c, NULL, &c->verdict);
	return (struct gp_core_client){ .id = c->handle,
					.slo_ns = gp_job_slo(c),
					.user = c->account,
					.client_class = c->verdict.client_class,
					.weight = weight ? weight : DEFAULT_WEIGHT };
}

int gp_schedule_client(struct gp_manager *m, struct gp_client *c)
{
	const struct gp_core_client client = describe(m, c);

	return gp_core_client_add(m->core, &client);
}

void gp_schedule_client_changed(struct gp_manager *m, struct gp_client *c)
{
	const struct gp_core_client client = describe(m, c);
	struct gp_core_client before;

	if (gp_core_client_get(m->core, c->handle, &before) == 0 &&
	    memcmp(&before, &client, sizeof(client)) != 0)
		(void)gp_core_client_change(m->core, &client, m->loop.now_ns);
}

void gp_schedule_client_gone(struct gp_manager *m, const struct gp_client *c)
{
	gp_core_free_client(m->core, c->handle, m->loop.now_ns);
	(void)gp_core_client_remove(m->core, c->handle, m->loop.now_ns);
}

static uint32_t class_of(const struct gp_queue *q)
{
	return q->client_class == GP_CLASS_ONLINE ? GP_CLASS_ONLINE : GP_CLASS_OFFLINE;
}

static enum gp_reach reach_of(const struct gp_manager *m, const struct gp_queue *q)
{
	bool is_exempt = !m->conf->stop_sdma && q->found.kind != GP_KIND_COMPUTE;

	if (gp_route_way(m, q, GP_KFD_WAY_AUTO))
		return is_exempt                         ? GP_REACH_HOLDS
		       : gp_queue_is_shown(&m->world, q) ? GP_REACH_ALL
							 : GP_REACH_FREE;
	return gp_route_way(m, q, GP_KFD_WAY_DBG) ? GP_REACH_HOLDS : GP_REACH_NONE;
}

/*
 * Of online queues, and of others where the policy asks for it.  An offline queue that was seen to be idle
 * is let go, and its next work would run into online work until it is seen.
 */
void gp_schedule_activity(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_core_status status;
	const struct gp_policy_ops *policy;
	uint32_t activity = q->activity;

	if (class_of(q) != GP_CLASS_ONLINE && gp_core_device_status(m->core, device_of(m, q), &status) == 0) {
		policy = gp_policy_find(status.policy);
		if (!policy || !(policy->flags & GP_POLICY_NEEDS_IDLE))
			activity = GP_ACTIVITY_UNKNOWN;
	}
	(void)gp_core_activity(m->core, q->handle, activity, m->loop.now_ns);
}

/* Where it is now. One that stands still, or is about to, or is held, stays where it was. */
static int enter(struct gp_manager *m, struct gp_queue *q)
{
	struct gp_core_queue_status status;
	const struct gp_core_queue queue = { .queue = q->handle,
					     .client = q->client->handle,
					     .device = device_of(m, q),
					     .client_class = class_of(q) };
	int r = gp_core_queue_status(m->core, q->handle, &status);

	if (r == 0 && (status.device == queue.device || status.held || status.state != GP_QUEUE_RUNNING))
		return 0;
	(void)gp_core_queue_remove(m->core, q->handle, m->loop.now_ns);
	return gp_core_queue_add(m->core, &queue, m->loop.now_ns);
}

/* -ENOMEM: it is not scheduled, and runs. */
int gp_schedule_queue(struct gp_manager *m, struct gp_queue *q)
{
	int r = enter(m, q);

	if (r < 0)
		return r;
	(void)gp_core_queue_class(m->core, q->handle, class_of(q), m->loop.now_ns);
	gp_schedule_activity(m, q);
	return gp_core_queue_reach(m->core, q->handle, reach_of(m, q), m->loop.now_ns);
}

void gp_schedule_queue_gone(struct gp_manager *m, struct gp_queue *q)
{
	gp_request_ended(q, GP_STOP, -ENOENT, 0);
	gp_request_ended(q, GP_RUN, 0, 0);
	gp_route_gone(m, q);
	gp_reserve_park(m, q, false);
	(void)gp_core_queue_remove(m->core, q->handle, m->loop.now_ns);
	m->reserves_changed = true;
}

void gp_schedule_reach(struct gp_manager *m, struct gp_client *c)
{
	gp_list_each(pos, &c->queues)
		(void)gp_schedule_queue(m, gp_container(pos, struct gp_queue, of_client));
}

struct gp_core_queue_status gp_schedule_status(const struct gp_manager *m, const struct gp_queue *q)
{
	struct gp_core_queue_status status = { 0 };

	(void)gp_core_queue_status(m->core, q->handle, &status); /* one that there was no memory for runs */
	return status;
}

/* Steps */

/* What counts of it depends on the policies. */
static void judge_activity(struct gp_manager *m)
{
	m->policies_changed = false;
	gp_list_each(pos, &m->world.all_queues)
		gp_schedule_activity(m, gp_container(pos, struct gp_queue, all));
}

void gp_schedule_step(struct gp_manager *m)
{
	const struct gp_core_host host = { .ops = &m->ops, .backend = m->route };

	gp_hang_alive(m->loop.now_ns);
	if (m->policies_changed)
		judge_activity(m);
	gp_route_flush(m->route);
	gp_alarm_at(&m->loop, &m->core_alarm, gp_core_step(m->core, &host, m->loop.now_ns));
}

static void nothing(void *manager)
{
	(void)manager; /* the step that follows does it */
}

int gp_schedule_open(struct gp_manager *m)
{
	const struct gp_backend_opts opts = { .size = sizeof(opts), .params = m };
	struct gp_core_opts core = m->conf->core;
	int r = gp_backend_complete(&m->ops, &gp_route_ops);

	if (r == 0)
		r = m->ops.open(&opts, &m->route);
	if (r == 0)
		r = gp_alarm_init(&m->loop, &m->core_alarm, nothing, m);
	if (r < 0)
		return r;
	core.note = note;
	core.name = name;
	core.note_arg = m;
	core.cpu_ns = gp_cpu_ns;
	m->core = gp_core_new(&core);
	r = m->core ? gp_core_device_add(m->core, UNKNOWN_DEVICE, CAPS | GP_CORE_APART) : -ENOMEM;
	if (r == 0)
		r = gp_core_set_policy(m->core, UNKNOWN_DEVICE, &gp_policy_fifo, m->loop.now_ns);
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		snprintf(m->policies[i], sizeof(m->policies[i]), "%s", policy_of(m->conf, i));
	return r;
}

void gp_schedule_close(struct gp_manager *m)
{
	m->core = gp_core_free(m->core);
	if (m->route)
		m->ops.close(m->route);
	m->route = NULL;
}

bool gp_schedule_at_rest(const struct gp_manager *m)
{
	gp_list_each(pos, &m->world.all_queues)
		if (gp_schedule_status(m, gp_container(pos, struct gp_queue, all)).state != GP_QUEUE_RUNNING)
			return false;
	return true;
}

/* Nobody is stopped any more. */
void gp_schedule_end(struct gp_manager *m)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		(void)gp_core_set_policy(m->core, i, &gp_policy_fifo, m->loop.now_ns);
	gp_list_each(pos, &m->world.all_clients)
		gp_core_free_client(m->core, gp_container(pos, struct gp_client, all)->handle,
				    m->loop.now_ns);
}
