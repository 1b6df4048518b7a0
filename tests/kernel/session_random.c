// SPDX-License-Identifier: MIT
/* bed: timeout=300 memory=3G param=cus=4 */
/*
 * A thousand preemptions by chance, of 24 queues in eight processes, by two sessions that come and go: every
 * dispatch ends, and once, every wave that was saved is restored, and nothing is left stopped.  An argument
 * is the seed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define PROCESSES 8
#define QUEUES 3
#define SESSIONS 2
#define PREEMPTIONS 1000
#define MOST_CALLS 20000
#define MOST_ENTRIES 8
#define DEPTH 8
#define WORKGROUPS 4
#define WAVE (2 * DBG_MS)
#define ENOUGH (60 * DBG_SECOND)

/* What a process that works shares with the test. */
struct worker {
	pid_t pid;
	volatile int ready, stop, failed;
	volatile uint64_t begun, ended, wrong; /* wrong: dispatches that ended more than once */
};

static struct worker *workers;
static struct kfd kfd;
static int sessions[SESSIONS];
static uint32_t opened, calls, odd;
static uint64_t cycles;

struct stream {
	struct kfd_queue queue;
	struct kfd_signal *signals;
	uint64_t begun, ended;
};

static void collect(struct worker *w, struct stream *s)
{
	while (s->ended < s->begun && s->signals[s->ended % DEPTH].value <= 0) {
		w->wrong += s->signals[s->ended % DEPTH].value < 0;
		s->ended++;
		w->ended++;
	}
}

static void feed(struct worker *w, struct stream *s)
{
	while (!w->stop && s->begun - s->ended < DEPTH) {
		s->signals[s->begun % DEPTH].value = 1;
		kfd_dispatch(&s->queue, WORKGROUPS, WAVE, &s->signals[s->begun % DEPTH]);
		s->begun++;
		w->begun++;
	}
}

static int make_streams(struct kfd *k, struct stream *streams)
{
	struct kfd_mem mem;
	int r = kfd_open(k);

	if (r == 0)
		r = kfd_alloc(k, &k->gpus[0], QUEUES * DEPTH * sizeof(struct kfd_signal), &mem);
	for (int i = 0; i < QUEUES && r == 0; i++) {
		r = kfd_queue_create(k, &k->gpus[0], KFD_TYPE_AQL, 7, &streams[i].queue);
		streams[i].signals = (struct kfd_signal *)mem.addr + i * DEPTH;
	}
	return r;
}

/* Works until it is told to stop, and until all that it began has ended. */
static void work(struct worker *w)
{
	static struct stream streams[QUEUES];
	static struct kfd own;
	uint64_t end = UINT64_MAX;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	w->failed = make_streams(&own, streams) < 0;
	w->ready = 1;
	while (!w->failed && (!w->stop || (w->ended < w->begun && kfd_now() < end))) {
		for (int i = 0; i < QUEUES; i++) {
			collect(w, &streams[i]);
			feed(w, &streams[i]);
		}
		if (w->stop && end == UINT64_MAX)
			end = kfd_now() + ENOUGH;
		kfd_sleep(DBG_MS);
	}
	kfd_sleep(20 * DBG_MS); /* for what might end once more */
	for (int i = 0; i < QUEUES; i++)
		for (int j = 0; j < DEPTH; j++)
			w->wrong += streams[i].signals[j].value < 0;
	_exit(0);
}

static int start_workers(void)
{
	int well = 0;

	workers = mmap(NULL, PROCESSES * sizeof(*workers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	for (int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		if (pid == 0)
			work(&workers[i]);
		workers[i].pid = pid;
	}
	for (int i = 0; i < PROCESSES; i++) {
		while (!workers[i].ready)
			kfd_sleep(DBG_MS);
		well += !workers[i].failed;
	}
	return well;
}

static struct kfd_session_queue some_queue(void)
{
	uint32_t id = (uint32_t)rand() % (QUEUES + 1);

	return session_queue(workers[rand() % PROCESSES].pid, id == QUEUES ? KFD_SESSION_ALL_QUEUES : id,
			     rand() % 2 ? KFD_SESSION_STOP : KFD_SESSION_RUN);
}

static void check(const struct kfd_session_queue *queues, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		odd += queues[i].status != KFD_SESSION_DONE && queues[i].status != KFD_SESSION_NO_CHANGE &&
		       queues[i].status != KFD_SESSION_BUSY;
}

static void reopen(int *fd)
{
	close(*fd);
	*fd = session_open(&kfd, 0);
	opened++;
}

static void preempt_by_chance(void)
{
	struct kfd_session_queue queues[MOST_ENTRIES];
	struct kfd_session_set set;

	for (calls = 0; cycles < PREEMPTIONS && calls < MOST_CALLS; calls++) {
		int *fd = &sessions[rand() % SESSIONS];
		uint32_t n = 1 + (uint32_t)rand() % MOST_ENTRIES;

		if (rand() % 50 == 0)
			reopen(fd);
		for (uint32_t i = 0; i < n; i++)
			queues[i] = some_queue();
		odd += session_set(*fd, queues, n, &set) != 0;
		check(queues, n);
		cycles += set.cycles;
	}
}

static int stopped_queues(void)
{
	int fd = session_open(&kfd, 0), n = 0;

	for (int i = 0; i < PROCESSES; i++)
		n += session_state(fd, workers[i].pid, KFD_SESSION_ALL_QUEUES) != KFD_SESSION_ACTIVE;
	close(fd);
	return n;
}

/* Dispatches that ended, or -1 if not all did, or some twice. */
static int64_t all_end(void)
{
	uint64_t begun = 0, ended = 0, wrong = 0;

	for (int i = 0; i < PROCESSES; i++)
		workers[i].stop = 1;
	for (int i = 0; i < PROCESSES; i++) {
		waitpid(workers[i].pid, NULL, 0);
		begun += workers[i].begun;
		ended += workers[i].ended;
		wrong += workers[i].wrong;
	}
	note("%llu dispatches, %llu ended, %llu more than once", (unsigned long long)begun,
	     (unsigned long long)ended, (unsigned long long)wrong);
	return begun == ended && !wrong ? (int64_t)ended : -1;
}

/* Saved and not restored: of those too that ended while they were stopped, in tests before. */
static int64_t waves_away(void)
{
	return kfd_stat(0, "waves_saved") - kfd_stat(0, "waves_restored");
}

int main(int argc, char **argv)
{
	int64_t saved, away;
	int well;

	if (session_missing())
		return 0;
	saved = kfd_stat(0, "waves_saved");
	away = waves_away();
	srand(argc > 1 ? (unsigned int)atoi(argv[1]) : 1);
	well = start_workers();
	if (!ok(kfd_open(&kfd) == 0 && well == PROCESSES, "eight processes work on three queues each"))
		return tap_done();
	for (int i = 0; i < SESSIONS; i++)
		sessions[i] = session_open(&kfd, 0);
	preempt_by_chance();
	ok(cycles >= PREEMPTIONS && odd == 0, "%llu preemptions in %u calls, by %u sessions (%u odd answers)",
	   (unsigned long long)cycles, calls, opened + SESSIONS, odd);
	for (int i = 0; i < SESSIONS; i++)
		close(sessions[i]);
	ok(stopped_queues() == 0, "when the last session is closed, nothing is stopped");
	ok(all_end() > 0, "every dispatch ends, and once");
	saved = kfd_stat(0, "waves_saved") - saved;
	ok(saved > 0 && waves_away() == away && kfd_stat(0, "bad_restores") == 0,
	   "every wave that was saved was restored (%lld)", (long long)saved);
	return tap_done();
}
