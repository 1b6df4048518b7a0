// SPDX-License-Identifier: MIT
#include "backend/sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/sim/presets.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/share.h"
#include "base/sized.h"
#include "base/timers.h"

/* Where the want under way on a queue is. */
enum stage { STAGE_NONE, STAGE_CALLING, STAGE_IN_DEVICE, STAGE_REPORTING };

struct sim_queue {
	struct gpm_queue model; /* must be first */
	struct gp_timer timer;
	uint64_t handle;
	uint64_t client;
	char client_name[GP_NAME_LEN];
	struct gp_list node;    /* all queues */
	struct gp_list in_call; /* those of one driver call; the first has the timer */
	struct gp_list in_done;
	uint32_t device;
	uint32_t client_class;
	uint32_t have;
	uint32_t want;
	uint32_t stage;
	uint32_t by_shim; /* it is stopped by its shim: it is resumed that way too */
	uint32_t by_agent;
	uint32_t expired; /* the lease ended while a want was under way */
	uint32_t leaving; /* it goes once it is stopped */
	uint64_t applied_ns;
	struct gp_done done[2]; /* what has ended and nobody asked about: a want, and its lease */
	uint32_t ndone;
	uint64_t called_ns;
	uint64_t off_ns; /* when the device had done it */
};

struct gp_backend {
	struct gpm_device device;
	struct gpm_gpu *gpus;
	uint64_t *gpu_next;
	uint32_t ngpus;
	uint32_t caps;
	uint64_t yield_slice_ns;
	uint64_t now;
	char name[GP_NAME_LEN];
	struct gp_random random;
	struct gp_timers timers;
	struct gp_timer lease;
	uint64_t lease_ns;
	struct gp_map queues;
	struct gp_list all;
	struct gp_list done;
	uint64_t nqueues, last_handle;
	/* for one driver call; as long as there are queues */
	struct gpm_queue **call_queues;
	uint32_t *call_wants;
	struct gp_want *lease_wants;
};

static struct sim_queue *of_timer(struct gp_timer *t)
{
	return gp_container(t, struct sim_queue, timer);
}

const struct gp_preset *gp_preset_find(const char *name)
{
	for (size_t i = 0; i < gp_npresets; i++)
		if (!strcmp(gp_presets[i].name, name))
			return &gp_presets[i];
	return NULL;
}

uint32_t gp_sim_caps(const struct gpm_device *dev)
{
	uint32_t caps = GP_CAP_INTERRUPT | GP_CAP_BATCH | GP_CAP_CROSS_PROCESS | GP_CAP_ACTIVITY;

	if (dev->selective)
		caps |= GP_CAP_SELECTIVE;
	if (dev->yields)
		caps |= GP_CAP_BACKGROUND;
	if (dev->sharing == GPM_TIMESLICE)
		caps |= GP_CAP_TAKES_TURNS;
	else
		caps |= GP_CAP_RESERVE;
	return caps;
}

static void init_gpus(struct gp_backend *be)
{
	for (uint32_t i = 0; i < be->ngpus; i++) {
		gpm_gpu_init(&be->gpus[i], &be->device);
		be->gpu_next[i] = UINT64_MAX;
	}
}

static int set_up(struct gp_backend *be, const struct gp_sim_params *params)
{
	be->device = *params->device;
	if (gpm_device_check(&be->device))
		return -EINVAL;
	be->ngpus = params->devices ? params->devices : 1;
	be->caps = params->caps ? params->caps : gp_sim_caps(&be->device);
	be->yield_slice_ns = params->yield_slice_ns;
	gp_random_init(&be->random, params->seed, UINT32_MAX);
	be->gpus = calloc(be->ngpus, sizeof(*be->gpus));
	be->gpu_next = calloc(be->ngpus, sizeof(*be->gpu_next));
	if (!be->gpus || !be->gpu_next)
		return -ENOMEM;
	init_gpus(be);
	return 0;
}

static void sim_close(struct gp_backend *be)
{
	gp_list_each_safe(pos, &be->all)
		free(gp_container(pos, struct sim_queue, node));
	gp_timers_free(&be->timers);
	gp_map_free(&be->queues);
	free(be->call_queues);
	free(be->call_wants);
	free(be->lease_wants);
	free(be->gpus);
	free(be->gpu_next);
	free(be);
}

static int sim_open(const struct gp_backend_opts *opts, struct gp_backend **ret)
{
	const char *name = opts && opts->device ? opts->device : "mi308x";
	const struct gp_preset *preset = gp_preset_find(name);
	struct gp_sim_params params = { 0 };
	struct gp_backend *be;
	int r;

	if (opts && opts->params)
		params = *(const struct gp_sim_params *)opts->params;
	if (!params.device && !preset)
		return -ENOENT;
	if (!params.device)
		params.device = &preset->device;
	be = calloc(1, sizeof(*be));
	if (!be)
		return -ENOMEM;
	gp_list_init(&be->all);
	gp_list_init(&be->done);
	(void)snprintf(be->name, sizeof(be->name), "%s", name);
	r = set_up(be, &params);
	if (r < 0) {
		sim_close(be);
		return r;
	}
	*ret = be;
	return 0;
}

static struct sim_queue *find(struct gp_backend *be, uint64_t queue)
{
	return gp_map_get(&be->queues, queue);
}

static void touch(struct gp_backend *be, uint32_t device)
{
	be->gpu_next[device] = gpm_gpu_step(&be->gpus[device], be->now);
}

/* A call may name every queue there is. */
static int reserve_call(struct gp_backend *be)
{
	size_t n = be->nqueues + 1;
	struct gpm_queue **queues = realloc(be->call_queues, n * sizeof(struct gpm_queue *));
	struct gp_want *lease;
	uint32_t *wants;

	if (!queues)
		return -ENOMEM;
	be->call_queues = queues;
	wants = realloc(be->call_wants, n * sizeof(*wants));
	if (!wants)
		return -ENOMEM;
	be->call_wants = wants;
	lease = realloc(be->lease_wants, n * sizeof(*lease));
	if (!lease)
		return -ENOMEM;
	be->lease_wants = lease;
	return 0;
}

static void describe(struct gp_backend *be, struct sim_queue *q, const struct gp_sim_queue_opts *opts)
{
	q->client = opts->client;
	q->device = opts->device;
	q->client_class = opts->client_class;
	(void)snprintf(q->client_name, sizeof(q->client_name), "%s",
		       opts->client_name ? opts->client_name : "");
	q->model.ctx.priority = opts->priority;
	q->model.offline = opts->client_class != GP_CLASS_ONLINE;
	q->model.shim = opts->shim;
	q->model.depth = opts->shim == GPM_SHIM_THROTTLE ? opts->depth : 0;
	q->model.slice_ns = be->yield_slice_ns;
	gp_list_init(&q->in_call);
	gp_list_init(&q->in_done);
}

int gp_sim_queue_add(struct gp_backend *be, const struct gp_sim_queue_opts *opts, uint64_t *ret_queue)
{
	struct sim_queue *q;
	int r;

	if (opts->device >= be->ngpus || opts->depth > GPM_MAX_DEPTH || opts->priority > 15)
		return -EINVAL;
	if (opts->shim == GPM_SHIM_THROTTLE && !opts->depth)
		return -EINVAL;
	r = reserve_call(be);
	if (r < 0)
		return r;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->handle = be->last_handle + 1;
	r = gp_map_put(&be->queues, q->handle, q);
	if (r < 0) {
		free(q);
		return r;
	}
	be->nqueues++;
	be->last_handle++;
	describe(be, q, opts);
	gp_list_append(&be->all, &q->node);
	gpm_gpu_add(&be->gpus[q->device], &q->model);
	touch(be, q->device);
	*ret_queue = q->handle;
	return 0;
}

void gp_sim_set_class(struct gp_backend *be, uint64_t client, uint32_t client_class)
{
	gp_list_each(pos, &be->all) {
		struct sim_queue *q = gp_container(pos, struct sim_queue, node);

		if (q->client != client)
			continue;
		q->client_class = client_class;
		q->model.offline = client_class != GP_CLASS_ONLINE;
	}
}

int gp_sim_submit(struct gp_backend *be, uint64_t queue, struct gpm_cmd *cmd)
{
	struct sim_queue *q = find(be, queue);

	if (!q || q->leaving)
		return -ENOENT;
	if (gpm_gpu_submit(&be->gpus[q->device], &q->model, cmd, be->now) < 0)
		return -EINVAL;
	touch(be, q->device);
	return 0;
}

struct gpm_cmd *gp_sim_finished(struct gp_backend *be)
{
	struct gpm_cmd *cmd = NULL;

	for (uint32_t i = 0; i < be->ngpus && !cmd; i++)
		cmd = gpm_gpu_finished(&be->gpus[i]);
	return cmd;
}

static uint64_t call_ns(struct gp_backend *be, uint32_t want, uint32_t have)
{
	const struct gpm_device *d = &be->device;
	uint64_t ns = 0;

	if (want == GP_STOP)
		return gp_random_between(&be->random, d->stop_call_min_ns, d->stop_call_max_ns);
	if (have == GP_STOP)
		ns = gp_random_between(&be->random, d->resume_call_min_ns, d->resume_call_max_ns);
	/* A slice is set with its own calls; one that was set before the stop is still there. */
	if (have != GP_STOP)
		for (uint64_t i = 0; i < d->slice_calls; i++)
			ns += gp_random_between(&be->random, d->slice_call_min_ns, d->slice_call_max_ns);
	return ns;
}

static void begin(struct gp_backend *be, struct sim_queue *q, uint32_t want)
{
	q->want = want;
	q->stage = STAGE_CALLING;
	q->applied_ns = be->now;
	q->called_ns = 0;
	gp_list_init(&q->in_call);
}

static uint32_t uses_shim(const struct sim_queue *q, const struct gp_apply_opts *opts)
{
	if (q->want != GP_STOP)
		return q->by_shim;
	return opts->mechanism == GP_MECH_THROTTLE || opts->mechanism == GP_MECH_GATE;
}

/* A batch is one call of the scheduler's own; on time slices the owner of the channels must make it. */
static int is_batched(const struct gp_backend *be, const struct sim_queue *q)
{
	return (be->caps & GP_CAP_BATCH) && be->device.sharing == GPM_CONCURRENT && !q->by_shim;
}

/* The agents of different processes work beside each other; each makes its calls in order. */
static uint64_t agent_ready(struct gp_backend *be, const struct sim_queue *q)
{
	uint64_t ready = be->now + be->device.message_ns;

	gp_list_each(pos, &be->all) {
		const struct sim_queue *other = gp_container(pos, struct sim_queue, node);

		if (other != q && other->client == q->client && other->stage == STAGE_CALLING &&
		    other->timer.place && other->timer.at_ns > ready)
			ready = other->timer.at_ns;
	}
	return ready;
}

static int schedule(struct gp_backend *be, struct sim_queue *q, struct sim_queue **batch)
{
	uint64_t at;

	q->by_agent = !is_batched(be, q);
	if (q->by_agent) {
		at = agent_ready(be, q) + (q->by_shim ? 0 : call_ns(be, q->want, q->have));
		return gp_timer_set(&be->timers, &q->timer, at);
	}
	if (batch[q->device]) {
		gp_list_append(&batch[q->device]->in_call, &q->in_call);
		return 0;
	}
	batch[q->device] = q;
	return gp_timer_set(&be->timers, &q->timer, be->now + call_ns(be, q->want, q->have));
}

static int check(const struct gp_backend *be, const struct sim_queue *q, const struct gp_want *w,
		 const struct gp_apply_opts *opts)
{
	if (!q || (q->leaving && w->want != GP_STOP))
		return -ENOENT;
	if (w->want > GP_STOP || opts->mechanism >= GP_MECH_COUNT)
		return -EINVAL;
	if (q->stage != STAGE_NONE)
		return -EBUSY;
	if (w->want == GP_BACKGROUND && !(be->caps & GP_CAP_BACKGROUND))
		return -ENOTSUP;
	if (w->want == GP_STOP && opts->mechanism == GP_MECH_YIELD)
		return -ENOTSUP;
	if ((opts->mechanism == GP_MECH_THROTTLE || opts->mechanism == GP_MECH_GATE) && w->want == GP_STOP &&
	    q->model.shim == GPM_SHIM_NONE)
		return -ENOTSUP;
	return 0;
}

static int apply_one(struct gp_backend *be, struct gp_want *w, const struct gp_apply_opts *opts,
		     struct sim_queue **batch)
{
	struct sim_queue *q = find(be, w->queue);
	int r = check(be, q, w, opts);

	if (r < 0)
		return r;
	if (w->want == q->have)
		return 0; /* costs nothing where nothing changes */
	begin(be, q, w->want);
	q->by_shim = uses_shim(q, opts);
	r = schedule(be, q, batch);
	if (r < 0)
		q->stage = STAGE_NONE;
	return r < 0 ? r : -EINPROGRESS;
}

/* Nothing was done, and every want says so. */
static int refuse(struct gp_want *wants, size_t n, int error)
{
	for (size_t i = 0; i < n; i++)
		wants[i].status = error;
	return error;
}

static int sim_apply(struct gp_backend *be, struct gp_want *wants, size_t n, const struct gp_apply_opts *opts)
{
	struct gp_apply_opts o = { 0 };
	int r = opts ? gp_sized_copy(&o, sizeof(o), opts, opts->size) : 0;
	struct sim_queue **batch;

	if (r < 0 || o.flags)
		return refuse(wants, n, r < 0 ? r : -EINVAL);
	batch = calloc(be->ngpus, sizeof(struct sim_queue *));
	if (!batch)
		return refuse(wants, n, -ENOMEM);
	for (size_t i = 0; i < n; i++) {
		wants[i].status = apply_one(be, &wants[i], &o, batch);
		if (!r && wants[i].status < 0 && wants[i].status != -EINPROGRESS)
			r = wants[i].status;
	}
	free(batch);
	if (o.lease_ns)
		be->lease_ns = o.lease_ns;
	if (be->lease_ns && gp_timer_set(&be->timers, &be->lease, be->now + be->lease_ns) < 0 && !r)
		r = -ENOMEM;
	return r;
}

/* The call reaches the driver, or the agent's shim. */
static void issue(struct gp_backend *be, struct sim_queue *q)
{
	struct gpm_gpu *g = &be->gpus[q->device];
	struct gp_list *pos = &q->in_call;
	uint32_t n = 0;

	do {
		struct sim_queue *one = gp_container(pos, struct sim_queue, in_call);

		one->stage = STAGE_IN_DEVICE;
		one->called_ns = be->now;
		be->call_queues[n] = &one->model;
		be->call_wants[n++] = one->want; /* GP_RUN is GPM_RUN, and so on */
		pos = pos->next;
	} while (pos != &q->in_call);
	if (q->by_shim)
		(void)gpm_gpu_close_shim(g, &q->model, q->want == GP_STOP, be->now);
	else
		(void)gpm_gpu_call(g, be->call_queues, be->call_wants, n, be->now);
	be->gpu_next[q->device] = be->now;
}

/* Everything that is stopped goes on, in one call; what is under way, when that has ended. */
static void give_back(struct gp_backend *be)
{
	static const struct gp_apply_opts none = { .size = sizeof(none) };
	size_t n = 0;

	gp_list_each(pos, &be->all) {
		struct sim_queue *q = gp_container(pos, struct sim_queue, node);

		q->expired = q->stage != STAGE_NONE;
		if (!q->expired && q->have != GP_RUN && !q->leaving)
			be->lease_wants[n++] = (struct gp_want){ .queue = q->handle, .want = GP_RUN };
	}
	if (n)
		(void)sim_apply(be, be->lease_wants, n, &none);
}

/* Nobody renewed. */
static void lease_ended(struct gp_backend *be)
{
	be->lease_ns = 0;
	give_back(be);
}

static void forget(struct gp_backend *be, struct sim_queue *q)
{
	(void)gpm_gpu_remove(&be->gpus[q->device], &q->model); /* it is stopped, and in no call */
	(void)gp_map_remove(&be->queues, q->handle);
	gp_list_remove(&q->node);
	gp_list_remove(&q->in_done);
	be->nqueues--;
	free(q);
}

/* Destroying a queue takes it off the device, by a stop like any other. */
static int leave(struct gp_backend *be, struct sim_queue *q)
{
	static const struct gp_apply_opts none = { .size = sizeof(none) };
	struct gp_want stop = { .queue = q->handle, .want = GP_STOP };

	if (q->stage != STAGE_NONE)
		return 0; /* what is under way ends first */
	if (q->have == GP_STOP && !q->by_shim) {
		forget(be, q);
		return 0;
	}
	q->have = GP_RUN; /* what its shim has stopped is still mapped */
	return sim_apply(be, &stop, 1, &none);
}

int gp_sim_queue_remove(struct gp_backend *be, uint64_t queue)
{
	struct sim_queue *q = find(be, queue);

	if (!q)
		return -ENOENT;
	q->leaving = 1;
	return leave(be, q);
}

static void report(struct gp_backend *be, struct sim_queue *q)
{
	q->stage = STAGE_NONE;
	q->have = q->want;
	if (q->leaving) {
		(void)leave(be, q);
		return;
	}
	if (q->ndone == 2)
		q->ndone = 1;
	q->done[q->ndone++] = (struct gp_done){ .want = { .queue = q->handle, .want = q->want },
						.latency_ns = q->off_ns - q->applied_ns };
	gp_list_remove(&q->in_done);
	gp_list_append(&be->done, &q->in_done);
	if (q->expired)
		give_back(be);
}

static void device_done(struct gp_backend *be, struct sim_queue *q)
{
	uint64_t message = q->by_agent ? be->device.message_ns : 0;

	q->off_ns = q->model.ended_ns;
	q->stage = STAGE_REPORTING;
	if (gp_timer_set(&be->timers, &q->timer, be->now + message) < 0)
		report(be, q);
}

static void fire(struct gp_backend *be, struct gp_timer *t)
{
	gp_timer_cancel(&be->timers, t);
	if (t == &be->lease)
		lease_ended(be);
	else if (of_timer(t)->stage == STAGE_CALLING)
		issue(be, of_timer(t));
	else
		report(be, of_timer(t));
}

uint64_t gp_sim_next(const struct gp_backend *be)
{
	uint64_t next = gp_timers_next(&be->timers);

	for (uint32_t i = 0; i < be->ngpus; i++)
		next = be->gpu_next[i] < next ? be->gpu_next[i] : next;
	return next;
}

void gp_sim_advance(struct gp_backend *be, uint64_t now_ns)
{
	struct gpm_queue *changed;
	struct gp_timer *t;

	be->now = now_ns;
	while ((t = gp_timers_first(&be->timers)) && t->at_ns <= now_ns)
		fire(be, t);
	for (uint32_t i = 0; i < be->ngpus; i++) {
		if (be->gpu_next[i] > now_ns)
			continue;
		touch(be, i);
		while ((changed = gpm_gpu_changed(&be->gpus[i])))
			device_done(be, (struct sim_queue *)changed);
	}
}

void gp_sim_run(struct gp_backend *be, uint64_t limit_ns)
{
	uint64_t timer = gp_timers_next(&be->timers);

	if (be->ngpus == 1) /* of several, one may end something that another waits for */
		be->gpu_next[0] =
			gpm_gpu_run(&be->gpus[0], be->gpu_next[0], timer < limit_ns ? timer : limit_ns);
}

static int sim_complete(struct gp_backend *be, struct gp_done *done, size_t n)
{
	size_t i = 0;

	gp_list_each_safe(pos, &be->done) {
		struct sim_queue *q = gp_container(pos, struct sim_queue, in_done);

		while (q->ndone && i < n) {
			done[i++] = q->done[0];
			q->done[0] = q->done[1];
			q->ndone--;
		}
		if (q->ndone)
			break;
		gp_list_remove(&q->in_done);
	}
	return (int)i;
}

static int sim_devices(struct gp_backend *be, struct gp_device_info *infos, size_t n)
{
	for (uint32_t i = 0; i < be->ngpus && i < n; i++) {
		infos[i] = (struct gp_device_info){
			.size = sizeof(*infos),
			.device = i,
			.caps = be->caps,
			.compute_units = (uint32_t)(be->device.xccs * be->device.cus_per_xcc),
			.queue_slots = (uint32_t)be->device.queue_slots,
		};
		(void)snprintf(infos[i].name, sizeof(infos[i].name), "%s", be->name);
		(void)snprintf(infos[i].backend, sizeof(infos[i].backend), "%s", gp_sim_ops.name);
	}
	return (int)be->ngpus;
}

static uint32_t state_of(const struct sim_queue *q)
{
	if (q->stage == STAGE_NONE)
		return q->have == GP_STOP ? GP_QUEUE_SUSPENDED : GP_QUEUE_RUNNING;
	if (q->want == GP_STOP)
		return GP_QUEUE_SUSPENDING;
	return q->have == GP_STOP ? GP_QUEUE_RESUMING : GP_QUEUE_RUNNING;
}

static uint32_t activity_of(const struct sim_queue *q)
{
	return q->model.waiting ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;
}

static int sim_queues(struct gp_backend *be, struct gp_queue_info *infos, size_t n)
{
	size_t i = 0;

	gp_list_each(pos, &be->all) {
		struct sim_queue *q = gp_container(pos, struct sim_queue, node);

		if (i++ >= n)
			continue;
		infos[i - 1] = (struct gp_queue_info){ .size = sizeof(*infos),
						       .queue = q->handle,
						       .client = q->client,
						       .device = q->device,
						       .priority = q->model.ctx.priority,
						       .client_class = q->client_class,
						       .state = state_of(q),
						       .activity = activity_of(q) };
		memcpy(infos[i - 1].client_name, q->client_name, sizeof(q->client_name));
	}
	return (int)i;
}

static int sim_reserve(struct gp_backend *be, uint32_t device, uint32_t online, uint32_t offline)
{
	uint32_t limit;
	int r;

	if (device >= be->ngpus)
		return -ENOENT;
	if (!(be->caps & GP_CAP_RESERVE))
		return -ENOTSUP;
	r = gp_share_limit((uint32_t)be->device.queue_slots, online, offline, &limit);
	if (r < 0)
		return r;
	gpm_gpu_limit_offline(&be->gpus[device], limit);
	touch(be, device);
	return 0;
}

static int sim_activity(struct gp_backend *be, uint64_t queue, struct gp_activity *ret)
{
	struct sim_queue *q = find(be, queue);

	if (!q)
		return -ENOENT;
	*ret = (struct gp_activity){ .rptr = q->model.kernels,
				     .wptr = q->model.kernels + q->model.waiting,
				     .activity = activity_of(q) };
	return 0;
}

struct gpm_gpu *gp_sim_gpu(struct gp_backend *be, uint32_t device)
{
	return &be->gpus[device];
}

struct gpm_queue *gp_sim_queue(struct gp_backend *be, uint64_t queue)
{
	struct sim_queue *q = find(be, queue);

	return q ? &q->model : NULL;
}

uint64_t gp_sim_called_ns(struct gp_backend *be, uint64_t queue)
{
	struct sim_queue *q = find(be, queue);

	return q ? q->called_ns : 0;
}

const struct gp_backend_ops gp_sim_ops = {
	.size = sizeof(gp_sim_ops),
	.abi = GP_BACKEND_ABI,
	.name = "sim",
	.open = sim_open,
	.close = sim_close,
	.devices = sim_devices,
	.queues = sim_queues,
	.apply = sim_apply,
	.complete = sim_complete,
	.reserve = sim_reserve,
	.activity = sim_activity,
};
