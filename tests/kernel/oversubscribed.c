// SPDX-License-Identifier: MIT
/* bed: timeout=240 memory=3G param=cus=8 */
/* 64 queues in 4 processes on 24 hardware slots: they take turns, and all of them get done. */
#include <sys/wait.h>
#include <unistd.h>

#include "kfd.h"
#include "tap.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define PROCESSES 4
#define QUEUES 16
#define DISPATCHES 4

static int process(int go)
{
	static struct kfd_queue queues[QUEUES];
	struct kfd_signal *signals;
	struct kfd_mem mem;
	struct kfd kfd;
	char byte;

	if (kfd_open(&kfd) < 0 ||
	    kfd_alloc(&kfd, &kfd.gpus[0], QUEUES * DISPATCHES * sizeof(*signals), &mem) < 0)
		return 1;
	signals = mem.addr;
	for (int i = 0; i < QUEUES; i++)
		if (kfd_queue_create(&kfd, &kfd.gpus[0], KFD_TYPE_AQL, 7, &queues[i]) < 0)
			return 2;
	if (read(go, &byte, 1) != 1) /* all queues of all processes are there */
		return 3;
	for (int i = 0; i < QUEUES * DISPATCHES; i++) {
		signals[i].value = 1;
		kfd_dispatch(&queues[i / DISPATCHES], 8, 5 * MS, &signals[i]);
	}
	for (int i = 0; i < QUEUES * DISPATCHES; i++)
		if (kfd_wait(&signals[i], 120 * SECOND) < 0)
			return 4;
	return 0;
}

/* Saved and not restored: of those too that ended while they were stopped, in tests before. */
static int64_t waves_away(void)
{
	return kfd_stat(0, "waves_saved") - kfd_stat(0, "waves_restored");
}

int main(void)
{
	int64_t away = waves_away();
	pid_t children[PROCESSES];
	int go[2], status;

	if (pipe(go) < 0)
		return 1;
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0)
			_exit(process(go[0]));
	}
	for (int i = 0; i < 600 && kfd_stat(0, "active") < PROCESSES * QUEUES; i++)
		kfd_sleep(100 * MS);
	ok(kfd_stat(0, "active") == PROCESSES * QUEUES, "64 queues are in the run list");
	ok(kfd_stat(0, "mapped") == 24, "24 of them have a hardware slot");
	ok(write(go[1], "....", PROCESSES) == PROCESSES, "they get work");
	for (int i = 0; i < PROCESSES; i++) {
		waitpid(children[i], &status, 0);
		ok(status == 0, "process %d: all of its queues got their work done (status %d)", i,
		   status >> 8);
	}
	ok(kfd_stat(0, "quanta") > 2, "they took turns (%lld)", (long long)kfd_stat(0, "quanta"));
	ok(waves_away() == away, "every wave that was saved came back");
	ok(kfd_stat(0, "bad_restores") == 0, "every save area held what was put there");
	return tap_done();
}
