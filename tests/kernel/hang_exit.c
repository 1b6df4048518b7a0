// SPDX-License-Identifier: MIT
/*
 * A process that exits while it is debugged.  The driver as it is takes it out of its table
 * first and then waits for an interrupt whose handler looks for it there: the process never
 * ends, no signal reaches it any more, and it stands in the way of every other process of the
 * driver that wants to end.  drain_fix mends the other hang (hang_disable.c) and not this one.
 * That other one befalls a debugger that ends without DISABLE, too, and no signal helps it.
 *
 * bed: timeout=45 param=cus=4 param=drain_fix=1 stock-hangs-in=kfd_process_drain_interrupts
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "dbg.h"
#include "tap.h"

#define WAITS_IN "kfd_process_drain_interrupts"
#define TIMES 10

static struct kfd kfd;
static int wake[2];

static int start_target(struct dbg_peer *p, uint64_t threads)
{
	int r = dbg_peer_start(p);

	if (r == 0)
		r = dbg_peer_do(p, DBG_OPEN, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_RUNTIME_ENABLE, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_THREADS, threads);
	return r == 0 ? dbg_peer_do(p, DBG_CREATE, 1) : r;
}

static int set_drain_fix(const char *value)
{
	int fd = open("/sys/module/amdgpu/parameters/drain_fix", O_WRONLY | O_CLOEXEC);
	ssize_t n = write(fd, value, 1);

	close(fd);
	return n == 1 ? 0 : -EIO;
}

static void is_stuck(struct dbg_peer *p)
{
	dbg_peer_tell(p, DBG_EXIT, 0);
	ok(dbg_sits_in(p->pid, WAITS_IN, KFD_SOON), "it sits in " WAITS_IN);
	ok(dbg_sits_in(p->pid, "exit_mmap", 0), "below exit_mmap");
	ok(dbg_disable(&kfd, p->pid) == -ESRCH, "DISABLE does not find it any more");
	kill(p->pid, SIGKILL);
	ok(dbg_ends(p->pid, 2 * DBG_SECOND) == -ETIMEDOUT, "it cannot be killed");
}

static void is_in_the_way_of(struct dbg_peer *bystander)
{
	dbg_peer_tell(bystander, DBG_EXIT, 0);
	ok(dbg_ends(bystander->pid, 2 * DBG_SECOND) == -ETIMEDOUT,
	   "a process that nobody debugs cannot end now");
	ok(dbg_sits_in(bystander->pid, "synchronize_srcu", KFD_SOON), "it waits for the others");
}

static void end(struct dbg_peer *p)
{
	dbg_peer_tell(p, DBG_EXIT, 0);
	ok(dbg_ends(p->pid, 1000 * DBG_SECOND) == 0, "a process ends");
}

/* Each looks for the other, and one may be gone from the driver's table already. */
static void end_together(void)
{
	struct dbg_peer target, debugger;

	if (!ok(start_target(&target, 0) == 0 && dbg_peer_start(&debugger) == 0 &&
			dbg_peer_do(&debugger, DBG_OPEN, 0) == 0 &&
			dbg_peer_do(&debugger, DBG_ATTACH, (uint64_t)target.pid) == KFD_RUNTIME_STATE_ENABLED,
		"a process and its debugger"))
		return;
	dbg_peer_tell(&target, DBG_EXIT, 0);
	dbg_peer_tell(&debugger, DBG_EXIT, 0);
	ok(dbg_ends(target.pid, 1000 * DBG_SECOND) == 0 && dbg_ends(debugger.pid, 1000 * DBG_SECOND) == 0,
	   "end at once");
}

static int start_all(struct dbg_peer *p, struct dbg_peer *debugger)
{
	for (uint64_t i = 0; i < 4; i++)
		if (start_target(&p[i], i == 1 ? 3 : 0) < 0)
			return -ENODEV;
	if (dbg_peer_start(debugger) < 0 || dbg_peer_do(debugger, DBG_OPEN, 0) < 0)
		return -ENODEV;
	kfd.fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	return kfd.fd >= 0 && pipe2(wake, O_NONBLOCK | O_CLOEXEC) == 0 ? 0 : -ENODEV;
}

int main(void)
{
	struct dbg_peer p[4], debugger;

	if (!ok(start_all(p, &debugger) == 0,
		"four processes with queues, the second with four threads, and a debugger"))
		return tap_done();
	ok(dbg_attach(&kfd, p[0].pid, wake[1], 0) == KFD_RUNTIME_STATE_ENABLED &&
		   dbg_attach(&kfd, p[1].pid, wake[1], 0) == KFD_RUNTIME_STATE_ENABLED,
	   "the first two are debugged by us");
	ok(dbg_peer_do(&debugger, DBG_ATTACH, (uint64_t)p[2].pid) == KFD_RUNTIME_STATE_ENABLED,
	   "the third by the debugger");
	if (!kfd_is_patched()) {
		is_stuck(&p[0]);
		is_stuck(&p[1]);
		is_in_the_way_of(&p[3]);
		ok(set_drain_fix("0") == 0, "drain_fix is taken back");
		is_stuck(&debugger);
	}
	end(&p[0]); /* never, on the stock driver */
	end(&p[1]);
	ok(set_drain_fix("0") == 0, "drain_fix is taken back");
	end(&debugger);
	end(&p[2]);
	end(&p[3]);
	for (int i = 0; i < TIMES; i++)
		end_together();
	return tap_done();
}
