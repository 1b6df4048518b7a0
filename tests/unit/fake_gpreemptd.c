// SPDX-License-Identifier: MIT
/*
 * Not a test: fake_daemon.h as a program, for tests of programs.
 *
 *   fake_gpreemptd SOCKET [WORD...]   says "ready", and goes when its standard input ends
 *
 *   PID:QUEUE[:PRIORITY]   it has this queue
 *   many=N                 N queues of process 300
 *   refuse=PID:QUEUE=N     stopping that one comes to -N
 *   unwelcome=N            it refuses everybody, with -N and the text
 *   text=TEXT              of its answers
 *   batch                  its devices take many queues at once
 *   silent=N, drop=N       at messages of this type it does not answer, or hangs up
 *   error=N:M              it refuses messages of type N with -M and the text
 *   client=PID:CLASS:STATE:SHARE[:NAME]   it has this client; numbers, and NAME "serve" unless given
 *   device=PID:N           the clients of this process that it has are on that one
 *   event=KIND:PID:LATENCY:STATUS         it keeps this one, with the text
 *   behind=SECONDS                        its clock is, from now on
 *   devices=N[:M]          it has so many, of which the first M are no simulated ones
 *   jobs=N:M               it lists N jobs of Slurm's the first time, and M from then on
 *   hide=PID:QUEUE         that queue goes
 *   place=PID=TEXT         the queues and clients of this process that it has are there
 *   ejected=TEXT           why its last policy was
 *   backoff                it backs off, for the reason that ejected says
 *
 * Each line of its standard input is one more word, taken while it runs; event goes to who follows.
 * What it heard is told by the word heard: HINT's client, number, expiry, what, device and serial, POLICY's
 * device, how many LISTs.
 */
#include <inttypes.h>

#include "fake_daemon.h"

static struct fake_daemon fake;
static uint32_t behind; /* s */

static void refuse(uint32_t pid, uint32_t id, int status)
{
	for (size_t i = 0; i < fake.nqueues; i++)
		if (fake.queues[i].info.pid == pid && fake.queues[i].info.queue_id == id)
			fake.queues[i].status = -status;
}

static void hide(uint32_t pid, uint32_t id)
{
	for (size_t i = 0; i < fake.nqueues; i++)
		if (fake.queues[i].info.pid == pid && fake.queues[i].info.queue_id == id)
			fake.queues[i].hidden = 1;
}

static void place(uint32_t pid, const char *text)
{
	for (size_t i = 0; i < fake.nqueues; i++)
		if (fake.queues[i].info.pid == pid)
			snprintf(fake.queues[i].info.place, sizeof(fake.queues[i].info.place), "%s", text);
	for (size_t i = 0; i < fake.nclients && i < FAKE_MOST; i++)
		if (fake.clients[i].pid == pid)
			snprintf(fake.clients[i].place, sizeof(fake.clients[i].place), "%s", text);
}

static void add_client(uint32_t pid, uint32_t class, uint32_t state, uint32_t share, const char *name)
{
	struct gp_client_info *c = &fake.clients[fake.nclients++ % FAKE_MOST];

	*c = (struct gp_client_info){ .client = FAKE_HANDLES + fake.nclients,
				      .pid = pid,
				      .client_class = class,
				      .weight = 100,
				      .state = state,
				      .slo_ns = class == GP_CLASS_ONLINE ? 20000000 : 0,
				      .queues = 2,
				      .share_permille = share,
				      .hinted = 12,
				      .sampled = 34,
				      .rule = "environment" };
	snprintf(c->name, sizeof(c->name), "%s", name);
}

static void put_on(uint32_t pid, uint32_t device)
{
	for (size_t i = 0; i < fake.nclients && i < FAKE_MOST; i++)
		if (fake.clients[i].pid == pid)
			fake.clients[i].device = device;
}

static void add_event(uint32_t kind, uint32_t pid, uint64_t latency_ns, int status)
{
	struct timespec now;
	struct gp_event e = { .number = fake.nevents + 1,
			      .kind = kind,
			      .client = pid ? FAKE_HANDLES + 1 : 0,
			      .latency_ns = latency_ns,
			      .pid = pid,
			      .status = -status };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	e.at_ns = (uint64_t)(now.tv_sec - behind) * 1000000000 + (uint64_t)now.tv_nsec;
	if (kind == GP_EVENT_LOST)
		e.number = e.at_ns = 0;
	snprintf(e.client_name, sizeof(e.client_name), "%s", pid ? "train" : "");
	snprintf(e.way, sizeof(e.way), "%s", latency_ns ? "update" : "");
	snprintf(e.text, sizeof(e.text), "%s", fake.text);
	fake.events[fake.nevents++ % FAKE_MOST] = e;
	if (fake.wanted.follow)
		fake_tell(&fake, &e);
}

static void tell_heard(void)
{
	pthread_mutex_lock(&fake.lock);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %u %u %u\n", fake.hint.client, fake.hint.number,
	       fake.hint.expiry_ns, fake.hint.what, fake.hint.device, fake.hint_serial, fake.policy.device,
	       fake.seen[GP_MSG_LIST]);
	pthread_mutex_unlock(&fake.lock);
	fflush(stdout);
}

/* What the verbs are told; 0: it is none of those. */
static int take_more(const char *word)
{
	char name[GP_NAME_LEN] = "serve";
	uint32_t a, b, c, d;
	uint64_t latency;
	int status;

	if (sscanf(word, "client=%u:%u:%u:%u:%31s", &a, &b, &c, &d, name) >= 4)
		add_client(a, b, c, d, name);
	else if (sscanf(word, "device=%u:%u", &a, &b) == 2)
		put_on(a, b);
	else if (sscanf(word, "event=%u:%u:%" SCNu64 ":%d", &a, &b, &latency, &status) == 4)
		add_event(a, b, latency, status);
	else if (sscanf(word, "error=%u:%d", &a, &status) == 2)
		fake.error_at = a, fake.error = -status;
	else if (sscanf(word, "hide=%u:%u", &a, &b) == 2)
		hide(a, b);
	else if (sscanf(word, "behind=%u", &a) == 1)
		behind = a;
	else if (sscanf(word, "jobs=%u:%u", &a, &b) == 2)
		fake.features = GP_FEATURE_JOBS, fake.jobs[0] = a, fake.jobs[1] = b;
	else if (sscanf(word, "devices=%zu:%zu", &fake.ndevices, &fake.nreal) >= 1)
		;
	else if (!strncmp(word, "ejected=", 8))
		snprintf(fake.stats.ejection, sizeof(fake.stats.ejection), "%s", word + 8);
	else if (!strcmp(word, "backoff"))
		fake.stats.backoff_until_ns = 1, memcpy(fake.stats.reason, fake.stats.ejection, 128);
	else if (!strcmp(word, "heard"))
		tell_heard();
	else
		return 0;
	return 1;
}

static void take(const char *word)
{
	uint32_t pid, id, priority = 7, n;
	char text[96];
	int status;

	if (take_more(word))
		return;

	if (sscanf(word, "refuse=%u:%u=%d", &pid, &id, &status) == 3)
		refuse(pid, id, status);
	else if (sscanf(word, "many=%u", &n) == 1)
		for (uint32_t i = 0; i < n; i++)
			fake_add(&fake, 300, i, (uint64_t)(i + 1) << 16);
	else if (sscanf(word, "unwelcome=%d", &status) == 1)
		fake.unwelcome = 1, fake.error = -status;
	else if (!strncmp(word, "text=", 5))
		snprintf(fake.text, sizeof(fake.text), "%s", word + 5);
	else if (!strcmp(word, "batch"))
		fake.caps |= GP_CAP_BATCH;
	else if (sscanf(word, "silent=%u", &n) == 1)
		fake.silent_at = n;
	else if (sscanf(word, "place=%u=%95[^\n]", &pid, text) == 2)
		place(pid, text);
	else if (sscanf(word, "drop=%u", &n) == 1)
		fake.drop_at = n;
	else if (sscanf(word, "%u:%u:%u", &pid, &id, &priority) >= 2)
		fake_add(&fake, pid, id, 0x7f0000000000 + ((uint64_t)id << 16))->info.priority = priority;
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc < 2)
		return 2;
	fake.ndevices = 1;
	fake.caps = GP_CAP_INTERRUPT | GP_CAP_CROSS_PROCESS;
	fake.stats = (struct gp_stats){ .preemptions = 12,
					.cycles = 40,
					.suspends = 24,
					.resumes = 23,
					.failures = 1,
					.suspend_p50_ns = 1200000,
					.suspend_p99_ns = 3000000,
					.suspend_max_ns = 4000000,
					.hints = 5,
					.samples = 7 };
	for (int i = 2; i < argc; i++)
		take(argv[i]);
	if (fake_start(&fake, argv[1]) < 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		take(line);
	}
	fake_stop(&fake);
	return 0;
}
