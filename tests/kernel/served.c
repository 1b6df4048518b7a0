// SPDX-License-Identifier: MIT
/*
 * Not a test: a program on AMD's own runtime, for tests to schedule.  Of gpreempt it knows hints at most.  It
 * does what it is told, a line at a time:
 *
 * - served QUEUES [SOCKET]: says "ready ID:RING ..."; SOCKET: its requests are hinted to the gpreemptd there
 * - busy WORKGROUPS WAVE_US: from now on each queue always has work, of such dispatches
 * - idle: ends what is under way
 * - progress: says how many dispatches each queue has ended
 * - serve N PERIOD_US DISPATCHES WORKGROUPS WAVE_US: N requests on the first queue, by the clock; says
 *   "served START LATENCY:SENT:ENDED ...": when it began, on the monotonic clock, and of each request, from
 *   when it was to come, when the program knew of its end, when it was sent and when the GPU had ended it, ns
 * - end: ends what is under way and says "end BEGUN ENDED WRONG STATUS"
 */
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd.h"

#define US 1000ull
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define MOST 32
#define MOST_REQUESTS 10000
#define DEPTH 64 /* dispatches that a queue can have under way */
#define AHEAD 4  /* of them, where there is always work */
#define RING 256
#define GROUP 256 /* work-items */
#define TICK 10   /* ns of the GPU's clock */

static hsa_agent_t gpu;

static struct slot {
	hsa_queue_t *queue;
	hsa_signal_t signals[DEPTH];
	uint64_t begun, ended;
} slots[MOST];
static uint32_t nslots;

struct kind {
	uint32_t workgroups;
	uint64_t wave_ns;
};

struct load {
	struct kind kind;
	uint64_t n, period_ns, dispatches; /* dispatches: of each request */
	uint64_t start_ns, first;          /* first: what the queue had begun before */
	uint64_t sent, done;
};

static struct kind work; /* that each queue always has; wave_ns 0: none */
static uint64_t wrong;   /* dispatches that ended more than once */
static struct request {
	uint64_t latency_ns, sent_ns, ended_ns; /* from when it was to come */
} requests[MOST_REQUESTS];
static struct gp_ctx *ctx;

/* Hints */

static int meet_daemon(const char *path)
{
	const struct gp_open_opts opts = { .size = sizeof(opts), .backend = "kfd", .socket = path };

	return gp_ctx_open(&opts, &ctx);
}

/* One that is lost is no loss: its queue is looked at all the same. */
static void hint(uint64_t request, int (*say)(struct gp_ctx *, const struct gp_hint *))
{
	const struct gp_hint h = { .size = sizeof(h), .number = request + 1 };

	if (ctx)
		(void)say(ctx, &h);
}

/* Dispatches */

static void dispatch(struct slot *s, struct kind kind)
{
	hsa_signal_t signal = s->signals[s->begun++ % DEPTH];
	uint64_t index = hsa_queue_add_write_index_screlease(s->queue, 1);
	hsa_kernel_dispatch_packet_t *p =
		(hsa_kernel_dispatch_packet_t *)s->queue->base_address + index % s->queue->size;
	uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
			  1 << HSA_PACKET_HEADER_BARRIER |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

	wrong += hsa_signal_load_scacquire(signal) != 0; /* it ended again after it was collected */
	hsa_signal_store_screlease(signal, 1);
	memset((char *)p + 2, 0, sizeof(*p) - 2);
	p->workgroup_size_x = GROUP;
	p->workgroup_size_y = p->workgroup_size_z = 1;
	p->grid_size_x = kind.workgroups * GROUP;
	p->grid_size_y = p->grid_size_z = 1;
	p->setup = 1;
	p->reserved2 = kind.wave_ns; /* where the software GPU reads it */
	p->completion_signal = signal;
	__atomic_store_n(&p->header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(s->queue->doorbell_signal, (hsa_signal_value_t)index);
}

static void collect(struct slot *s)
{
	hsa_signal_value_t value;

	while (s->ended < s->begun) {
		value = hsa_signal_load_scacquire(s->signals[s->ended % DEPTH]);
		if (value > 0)
			return;
		wrong += value < 0;
		s->ended++;
	}
}

static void feed(void)
{
	for (struct slot *s = slots; s < slots + nslots; s++) {
		collect(s);
		while (work.wave_ns && s->begun - s->ended < AHEAD)
			dispatch(s, work);
	}
}

static int settle(void)
{
	uint64_t end = kfd_now() + 60 * SECOND;

	work.wave_ns = 0;
	for (struct slot *s = slots; s < slots + nslots; s++) {
		for (collect(s); s->ended < s->begun; collect(s)) {
			if (kfd_now() > end)
				return -ETIMEDOUT;
			kfd_sleep(MS);
		}
	}
	return 0;
}

/* Requests */

static uint64_t arrival_ns(const struct load *l, uint64_t request)
{
	return l->start_ns + request * l->period_ns;
}

static void send_arrived(struct load *l, struct slot *s, uint64_t now)
{
	while (l->sent < l->n && arrival_ns(l, l->sent) <= now &&
	       s->begun - s->ended + l->dispatches <= DEPTH) {
		requests[l->sent].sent_ns = kfd_now() - arrival_ns(l, l->sent);
		hint(l->sent++, gp_hint_begin);
		for (uint64_t i = 0; i < l->dispatches; i++)
			dispatch(s, l->kind);
	}
}

/* Of a request's last dispatch. */
static hsa_signal_t last_signal(const struct load *l, const struct slot *s, uint64_t request)
{
	return s->signals[(l->first + (request + 1) * l->dispatches - 1) % DEPTH];
}

/* By the model's time, which the software GPU has from the monotonic clock. */
static uint64_t gpu_end_ns(hsa_signal_t signal)
{
	return ((const amd_signal_t *)(uintptr_t)signal.handle)->end_ts * TICK;
}

static void take_ended(struct load *l, struct slot *s)
{
	collect(s);
	while (l->done < l->sent && s->ended - l->first >= (l->done + 1) * l->dispatches) {
		struct request *r = &requests[l->done];

		r->latency_ns = kfd_now() - arrival_ns(l, l->done);
		r->ended_ns = gpu_end_ns(last_signal(l, s, l->done)) - arrival_ns(l, l->done);
		hint(l->done++, gp_hint_end);
	}
}

/* For the oldest request's last dispatch, or the next request. */
static void wait_for_work(const struct load *l, const struct slot *s)
{
	uint64_t now = kfd_now(), next = l->sent < l->n ? arrival_ns(l, l->sent) : now + SECOND;
	uint64_t ns = next > now ? next - now : MS; /* it is late: there was no room */

	if (l->done == l->n)
		return;
	if (l->done == l->sent)
		kfd_sleep(ns);
	else
		(void)hsa_signal_wait_scacquire(last_signal(l, s, l->done), HSA_SIGNAL_CONDITION_LT, 1, ns,
						HSA_WAIT_STATE_BLOCKED);
}

static void serve(struct load *l)
{
	struct slot *s = slots;

	l->first = s->begun;
	l->start_ns = kfd_now();
	while (l->done < l->n) {
		send_arrived(l, s, kfd_now());
		take_ended(l, s);
		wait_for_work(l, s);
	}
	printf("served %" PRIu64, l->start_ns);
	for (const struct request *r = requests; r < requests + l->n; r++)
		printf(" %" PRIu64 ":%" PRIu64 ":%" PRIu64, r->latency_ns, r->sent_ns, r->ended_ns);
	printf("\n");
}

/* Orders */

static void say_serve(const uint64_t *v)
{
	struct load load = { .n = v[0],
			     .period_ns = v[1] * US,
			     .dispatches = v[2],
			     .kind = { .workgroups = (uint32_t)v[3], .wave_ns = v[4] * US } };

	if (load.n > MOST_REQUESTS || load.dispatches < 1 || load.dispatches > DEPTH)
		printf("served too many\n");
	else
		serve(&load);
}

static void say_progress(void)
{
	printf("progress");
	for (struct slot *s = slots; s < slots + nslots; s++)
		printf(" %" PRIu64 ":%" PRIu64, s->queue->id, s->ended);
	printf("\n");
}

static void say_end(void)
{
	uint64_t begun = 0, ended = 0;
	int r = settle();

	for (struct slot *s = slots; s < slots + nslots; s++) {
		begun += s->begun;
		ended += s->ended;
		for (uint32_t i = 0; i < DEPTH; i++)
			wrong += hsa_signal_load_scacquire(s->signals[i]) < 0;
	}
	printf("end %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", begun, ended, wrong, r);
}

/* 1: that was the last. */
static int obey(const char *line)
{
	uint64_t v[5] = { 0 };
	char word[16] = "";

	if (sscanf(line, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, word, &v[0], &v[1],
		   &v[2], &v[3], &v[4]) < 1)
		return 0;
	if (!strcmp(word, "busy")) {
		work = (struct kind){ .workgroups = (uint32_t)v[0], .wave_ns = v[1] * US };
		printf("busy 0\n");
	} else if (!strcmp(word, "idle"))
		printf("idle %d\n", settle());
	else if (!strcmp(word, "progress"))
		say_progress();
	else if (!strcmp(word, "serve"))
		say_serve(v);
	else if (!strcmp(word, "end"))
		say_end();
	else
		printf("unknown\n");
	fflush(stdout);
	return !strcmp(word, "end");
}

static hsa_status_t find_gpu(hsa_agent_t agent, void *unused)
{
	hsa_device_type_t type;

	(void)unused;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_GPU)
		gpu = agent;
	return HSA_STATUS_SUCCESS;
}

static int prepare(uint32_t queues)
{
	hsa_status_t status = hsa_init();

	if (status == HSA_STATUS_SUCCESS)
		status = hsa_iterate_agents(find_gpu, NULL);
	for (nslots = 0; nslots < queues && nslots < MOST && status == HSA_STATUS_SUCCESS; nslots++) {
		status = hsa_queue_create(gpu, RING, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX,
					  UINT32_MAX, &slots[nslots].queue);
		for (uint32_t i = 0; i < DEPTH && status == HSA_STATUS_SUCCESS; i++)
			status = hsa_signal_create(0, 0, NULL, &slots[nslots].signals[i]);
	}
	return (int)status;
}

static int finish(void)
{
	ctx = gp_ctx_close(ctx);
	for (struct slot *s = slots; s < slots + nslots; s++) {
		hsa_queue_destroy(s->queue);
		for (uint32_t i = 0; i < DEPTH; i++)
			hsa_signal_destroy(s->signals[i]);
	}
	return hsa_shut_down() == HSA_STATUS_SUCCESS ? 0 : 1;
}

static void follow_orders(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char line[256];

	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		feed();
		if (poll(&in, 1, work.wave_ns ? 1 : -1) == 1 &&
		    (!fgets(line, sizeof(line), stdin) || obey(line)))
			return;
	}
}

int main(int argc, char **argv)
{
	int r = prepare(argc > 1 ? (uint32_t)atoi(argv[1]) : 1);

	if (r == 0 && argc > 2)
		r = meet_daemon(argv[2]);
	if (r != 0) {
		printf("failed %d\n", r);
		return 1;
	}
	printf("ready");
	for (struct slot *s = slots; s < slots + nslots; s++)
		printf(" %" PRIu64 ":%p", s->queue->id, s->queue->base_address);
	printf("\n");
	fflush(stdout);
	follow_orders();
	return finish();
}
