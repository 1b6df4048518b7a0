// SPDX-License-Identifier: MIT
/* What is counted on a device, and how it is told. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

/* Time goes by while at least one seat is in it. */
static void spell_enter(struct spell *s, uint64_t now)
{
	if (!s->seats++)
		s->since_ns = now;
}

static void spell_leave(struct spell *s, uint64_t now)
{
	if (!--s->seats)
		s->ended_ns += now - s->since_ns;
}

static uint64_t spell_ns(const struct spell *s, uint64_t now)
{
	return s->ended_ns + (s->seats ? now - s->since_ns : 0);
}

void gp_stats_use(struct seat *s, uint64_t now)
{
	struct spells *of = &s->device->spells[s->view.client_class == GP_CLASS_ONLINE];
	struct spell *spell = !s->active ? NULL : s->target == GP_STOP ? &of->waits : &of->runs;

	if (spell == s->spell)
		return;
	if (s->spell)
		spell_leave(s->spell, now);
	if (spell)
		spell_enter(spell, now);
	s->spell = spell;
}

void gp_stats_request(struct device *d, uint64_t took_ns, uint64_t slo_ns, int has_ended)
{
	if (has_ended)
		gp_hist_add(&d->requests, took_ns);
	else
		d->hints_expired++;
	if (!slo_ns)
		return;
	d->slo_requests++;
	d->slo_met += has_ended && took_ns <= slo_ns;
}

static enum gp_failure reason_of(int status)
{
	switch (-status) {
	case ETIMEDOUT:
		return GP_FAILURE_TIMEOUT;
	case ESRCH:
	case ENOENT:
	case ENODEV:
	case ECONNRESET:
		return GP_FAILURE_GONE;
	case EPERM:
	case EACCES:
	case EINVAL:
	case ENODATA:
	case EOPNOTSUPP:
		return GP_FAILURE_REFUSED;
	case EAGAIN:
	case EBUSY:
	case ENOMEM:
	case ENOSPC:
		return GP_FAILURE_BUSY;
	case ECANCELED:
		return GP_FAILURE_CANCELED;
	default:
		return GP_FAILURE_DRIVER;
	}
}

enum gp_attempt gp_stats_attempt(const struct queue *q)
{
	return q->asked == GP_STOP  ? GP_ATTEMPT_SUSPEND
	       : q->have == GP_STOP ? GP_ATTEMPT_RESUME
				    : GP_ATTEMPT_YIELD;
}

void gp_stats_failure(struct queue *q, int status)
{
	struct device *d = q->seat->device;

	d->failures++;
	d->failed[gp_stats_attempt(q)][reason_of(status)]++;
}

static void tell_latencies(const struct gp_hist *h, struct gp_latencies *ret)
{
	ret->count = h->count;
	ret->sum_ns = h->sum;
	gp_hist_decades(h, ret->at_most, GP_LATENCY_BOUNDS);
}

static void tell_quantiles(const struct device *d, struct gp_stats *ret)
{
	ret->suspend_p50_ns = gp_hist_quantile(&d->suspend, 5000);
	ret->suspend_p99_ns = gp_hist_quantile(&d->suspend, 9900);
	ret->suspend_max_ns = d->suspend.max;
	ret->resume_p50_ns = gp_hist_quantile(&d->resume, 5000);
	ret->resume_p99_ns = gp_hist_quantile(&d->resume, 9900);
	ret->resume_max_ns = d->resume.max;
}

static uint32_t count_backing_off(const struct device *d)
{
	uint32_t n = 0;

	gp_list_each(pos, &d->seats)
		n += gp_act_backs_off(gp_container(pos, struct seat, in_device));
	return n;
}

static void tell_details(const struct device *d, struct gp_stats *ret, uint64_t now)
{
	ret->has_details = 1;
	ret->backing_off = count_backing_off(d);
	tell_latencies(&d->suspend, &ret->suspend);
	tell_latencies(&d->resume, &ret->resume);
	tell_latencies(&d->requests, &ret->online);
	ret->hints_expired = d->hints_expired;
	ret->slo_requests = d->slo_requests;
	ret->slo_met = d->slo_met;
	ret->starved = d->starved;
	ret->offline_run_ns = spell_ns(&d->spells[0].runs, now);
	ret->offline_wait_ns = spell_ns(&d->spells[0].waits, now);
	ret->online_run_ns = spell_ns(&d->spells[1].runs, now);
	ret->online_wait_ns = spell_ns(&d->spells[1].waits, now);
	memcpy(ret->failed, d->failed, sizeof(ret->failed));
}

int gp_core_device_stats(struct gp_core *core, uint32_t device, struct gp_stats *ret, uint64_t now)
{
	struct device *d = gp_core_find_device(core, device);
	struct gp_core_status s;

	if (gp_core_device_status(core, device, &s) < 0)
		return -ENOENT;
	*ret = (struct gp_stats){ .size = sizeof(*ret),
				  .preemptions = s.preemptions,
				  .suspends = s.suspends,
				  .resumes = s.resumes,
				  .failures = s.failures,
				  .backoff_until_ns = s.backoff_until_ns > now ? s.backoff_until_ns : 0,
				  .policy_ejected = s.ejected,
				  .limited = s.limited,
				  .hints = s.hinted,
				  .samples = s.sampled,
				  .device = device,
				  .reason_age_ns = s.reason[0] ? now - s.reason_ns : 0 };
	memcpy(ret->policy, s.policy, sizeof(ret->policy));
	memcpy(ret->reason, s.reason, sizeof(ret->reason));
	memcpy(ret->ejection, s.ejection, sizeof(ret->ejection));
	tell_quantiles(d, ret);
	tell_details(d, ret, now);
	return 0;
}
