// SPDX-License-Identifier: MIT
/*
 * DISABLE on gfx942 with the driver as it is: kfd_process_drain_interrupts() sends itself an
 * interrupt that names VMID 0, the handler drops what does not name one of the driver's own,
 * and the wait has no end but a signal.  A mended driver (BED_DRIVER=patched) must not wait,
 * nor must the stock one on gfx90a, whose handler does not look.
 *
 * bed: timeout=60 param=cus=4 param=drain_fix=0
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "dbg.h"
#include "tap.h"

#define GFX942 90402
#define WAITS_IN "kfd_process_drain_interrupts"

static struct dbg_client me;

struct disable {
	pthread_t thread;
	volatile int is_done, result;
};

static void *disable_thread(void *arg)
{
	struct disable *d = arg;

	d->result = dbg_disable(&me.kfd, getpid());
	d->is_done = 1;
	return NULL;
}

static int disable_begin(struct disable *d)
{
	memset(d, 0, sizeof(*d));
	return -pthread_create(&d->thread, NULL, disable_thread, d);
}

static int ends(const struct disable *d, uint64_t timeout_ns)
{
	uint64_t end = kfd_now() + timeout_ns;

	while (!d->is_done && kfd_now() < end)
		kfd_sleep(DBG_MS);
	return d->is_done;
}

static void do_nothing(int number)
{
	(void)number;
}

static void it_waits_until_a_signal_comes(struct disable *d)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct kfd_dbg_queue queue;

	sigaction(SIGUSR1, &action, NULL);
	ok(!ends(d, 3 * DBG_SECOND), "DISABLE does not return");
	ok(dbg_sits_in(getpid(), WAITS_IN, KFD_SOON), "it sits in " WAITS_IN);
	pthread_kill(d->thread, SIGUSR1);
	ok(ends(d, KFD_SOON) && d->result == 0, "a signal frees it, and it returns 0 all the same");
	ok(dbg_snapshot(&me.kfd, getpid(), 0, &queue, 1) == -EINVAL, "the process is debugged no more");
}

static void it_returns(struct disable *d)
{
	ok(ends(d, KFD_SOON) && d->result == 0, "DISABLE returns by itself");
}

static int start(void)
{
	struct kfd_runtime_info info = { 0 };
	int pipes[2];

	if (!ok(dbg_client_open(&me) == 0 && pipe2(pipes, O_NONBLOCK | O_CLOEXEC) == 0, "the driver opens"))
		return -ENODEV;
	ok(dbg_runtime(&me.kfd, KFD_RUNTIME_ENABLE) == 0 && dbg_client_add(&me, 1) == 0, "with a queue");
	return ok(dbg_enable(&me.kfd, getpid(), pipes[1], 0, &info) == 0, "ENABLE") ? 0 : -EPROTO;
}

int main(void)
{
	struct disable d;
	uint32_t id;

	if (start() < 0)
		return tap_done();
	id = me.queues[0].id;
	dbg_client_run(&me, 0, 500 * DBG_MS);
	dbg_snapshot(&me.kfd, getpid(), KFD_EC_QUEUE_NEW, &(struct kfd_dbg_queue){ 0 }, 1);
	ok(dbg_suspend(&me.kfd, getpid(), &id, 1, KFD_DBG_DEFAULT_GRACE, 0) == 1, "its work is suspended");
	if (!ok(disable_begin(&d) == 0, "a thread calls DISABLE"))
		return tap_done();
	if (me.gpu->gfx_target != GFX942 || kfd_is_patched())
		it_returns(&d);
	else
		it_waits_until_a_signal_comes(&d);
	ok(dbg_client_end(&me, KFD_SOON) == 0, "the queue's work was resumed and ends");
	kfd_close(&me.kfd);
	return tap_done();
}
