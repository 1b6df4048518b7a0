// SPDX-License-Identifier: MIT
#include "cli/top_sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/client_text.h"

#define MOST_EVENTS 4096 /* at a time: more than gpreemptd keeps */
#define ANSWERS_NS (5 * GP_S)

const struct gp_top_device *gp_top_device(const struct gp_top *t, uint32_t device)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].device == device)
			return &t->of[i];
	return NULL;
}

struct gp_top_device *gp_top_device_add(struct gp_top *t, uint32_t device)
{
	struct gp_top_device *d = (struct gp_top_device *)gp_top_device(t, device);

	if (!d && t->n < GP_TOP_DEVICES) {
		d = &t->of[t->n++];
		*d = (struct gp_top_device){ .device = device,
					     .least_ns = t->slot_ns / 2,
					     .rate_milli = GP_TOP_UNKNOWN };
	}
	return d;
}

static int is_listed(const struct gp_top *t, uint32_t device)
{
	for (size_t i = 0; i < t->list.ndevices; i++)
		if (t->list.devices[i].device == device)
			return 1;
	return 0;
}

void gp_top_drop_gone(struct gp_top *t)
{
	for (size_t i = t->n; i--;)
		if (!is_listed(t, t->of[i].device))
			t->of[i] = t->of[--t->n];
}

void gp_top_take_stats(struct gp_top_device *d, const struct gp_stats *stats, uint64_t now_ns)
{
	const int goes_on = d->has_stats && stats->preemptions >= d->counted && now_ns > d->counted_ns;
	const uint64_t since_ns = now_ns - d->counted_ns;

	d->stats = *stats;
	d->has_stats = 1;
	if (goes_on && since_ns < d->least_ns)
		return;
	d->rate_milli = goes_on ? (stats->preemptions - d->counted) * 1000 * GP_S / since_ns : GP_TOP_UNKNOWN;
	d->counted = stats->preemptions;
	d->counted_ns = now_ns;
}

/* What was noted in slots that have the same places is too long ago. */
void gp_top_note(struct gp_top_latency *l, uint64_t slot, uint64_t latency_ns)
{
	uint64_t *worst = &l->worst_ns[slot % GP_TOP_SLOTS];

	if (slot > l->last + GP_TOP_SLOTS)
		memset(l->worst_ns, 0, sizeof(l->worst_ns));
	for (uint64_t i = l->last + 1; i <= slot && slot - l->last <= GP_TOP_SLOTS; i++)
		l->worst_ns[i % GP_TOP_SLOTS] = 0;
	if (slot > l->last)
		l->last = slot;
	if (slot + GP_TOP_SLOTS > l->last && latency_ns > *worst)
		*worst = latency_ns;
}

uint64_t gp_top_worst(const struct gp_top_latency *l, uint64_t slot)
{
	uint64_t worst = l->worst_ns[slot % GP_TOP_SLOTS];

	return slot > l->last || slot + GP_TOP_SLOTS <= l->last || !worst ? GP_TOP_UNKNOWN : worst;
}

uint64_t gp_top_offline_share(const struct gp_top *t, uint32_t device)
{
	uint64_t share = GP_TOP_UNKNOWN;

	for (size_t i = 0; i < t->nclients; i++) {
		const struct gp_client_info *c = &t->clients[i];

		if (c->device == device && c->client_class != GP_CLASS_ONLINE && gp_client_is_measured(c))
			share = (share == GP_TOP_UNKNOWN ? 0 : share) + c->share_permille;
	}
	return share;
}

uint64_t gp_top_p99(const struct gp_top_device *d)
{
	return d->has_stats && d->stats.suspend_max_ns ? d->stats.suspend_p99_ns : GP_TOP_UNKNOWN;
}

/* A device that goes between the list and the question has no figures; that gpreemptd goes is another matter.
 */
static int ask_stats(struct gp_top *t, struct gp_ctx *ctx, uint32_t device, uint64_t now_ns)
{
	struct gp_top_device *d = gp_top_device_add(t, device);
	struct gp_stats stats = { .size = sizeof(stats) };
	int r = gp_device_stats(ctx, device, &stats);

	if (r < 0 && d)
		d->has_stats = 0;
	if (r < 0)
		return r == -ENODEV ? 0 : r;
	if (d)
		gp_top_take_stats(d, &stats, now_ns);
	return 0;
}

static void drop_lists(struct gp_top *t)
{
	gp_machine_list_free(&t->list);
	free(t->clients);
	t->clients = NULL;
	t->nclients = 0;
	t->has_list = 0;
}

int gp_top_sample(struct gp_top *t, struct gp_ctx *ctx, uint64_t now_ns)
{
	uint32_t rights;
	int r;

	drop_lists(t);
	t->has_daemon = gp_ctx_rights(ctx, &rights) >= 0;
	r = gp_machine_list_read(ctx, &t->list);
	if (r == 0)
		gp_top_drop_gone(t);
	for (size_t i = 0; r == 0 && t->has_daemon && i < t->list.ndevices; i++)
		r = ask_stats(t, ctx, t->list.devices[i].device, now_ns);
	if (r == 0 && t->has_daemon) {
		r = gp_clients_read(ctx, &t->clients);
		t->nclients = r > 0 ? (size_t)r : 0;
		gp_clients_sort(t->clients, t->nclients);
	}
	if (r < 0) {
		drop_lists(t);
		t->has_daemon = 0;
		return r;
	}
	t->has_list = 1;
	return 0;
}

void gp_top_events_open(struct gp_top *t, struct gp_ctx *ctx, int follow)
{
	const struct gp_event_opts opts = { .size = sizeof(opts),
					    .kinds = 1u << GP_EVENT_SUSPEND,
					    .flags = follow ? GP_EVENT_FOLLOW : 0 };

	t->has_events = gp_event_open(ctx, &opts) == 0;
	t->follows = follow;
}

void gp_top_events_take(struct gp_top *t, struct gp_ctx *ctx)
{
	struct gp_event event = { .size = sizeof(event) };

	for (int i = 0; t->has_events && i < MOST_EVENTS; i++) {
		int r = gp_event_next(ctx, t->follows ? 0 : ANSWERS_NS, &event);
		struct gp_top_device *d;

		if (r <= 0) {
			t->has_events = r == 0;
			return;
		}
		d = event.latency_ns && event.device != GP_ALL_DEVICES ? gp_top_device_add(t, event.device)
								       : NULL;
		if (d)
			gp_top_note(&d->latency, event.at_ns / t->slot_ns, event.latency_ns);
	}
}

void gp_top_forget(struct gp_top *t)
{
	drop_lists(t);
	for (size_t i = 0; i < t->n; i++)
		t->of[i].has_stats = 0;
	t->has_daemon = t->has_events = 0;
}

void gp_top_free(struct gp_top *t)
{
	drop_lists(t);
	free(t);
}
