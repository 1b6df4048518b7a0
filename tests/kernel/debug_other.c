// SPDX-License-Identifier: MIT
/*
 * A process that debugs another: who may, for how long, and what becomes of the queues it
 * has stopped when it goes away.
 *
 * bed: timeout=180 param=cus=4 param=drain_fix=1
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dbg.h"
#include "tap.h"

#define QUEUES 2
#define WORK_MS 400

static struct kfd kfd;
static int wake[2];

/* A process with queues at work. */
static int start_target(struct dbg_peer *p)
{
	int r = dbg_peer_start(p);

	if (r == 0)
		r = dbg_peer_do(p, DBG_OPEN, 0);
	if (r == 0)
		r = dbg_peer_do(p, DBG_RUNTIME_ENABLE, 0);
	return r == 0 ? dbg_peer_do(p, DBG_CREATE, QUEUES) : r;
}

static int start_debugger(struct dbg_peer *p)
{
	int r = dbg_peer_start(p);

	return r == 0 ? dbg_peer_do(p, DBG_OPEN, 0) : r;
}

static void kill_and_reap(struct dbg_peer *p)
{
	kill(p->pid, SIGKILL);
	ok(dbg_ends(p->pid, KFD_SOON) == 0, "it can be killed");
}

static int attach(struct dbg_peer *p)
{
	return dbg_attach(&kfd, p->pid, wake[1], 0);
}

static void only_a_tracer_may_enable(struct dbg_peer *target)
{
	struct kfd_runtime_info info = { 0 };

	ok(dbg_enable(&kfd, target->pid, wake[1], 0, &info) == -EPERM, "ENABLE without ptrace is refused");
	ok(dbg_disable(&kfd, target->pid) == -EPERM && dbg_suspend_all(&kfd, target->pid) == -EPERM,
	   "and so is all else");
	ok(attach(target) == KFD_RUNTIME_STATE_ENABLED, "PTRACE_SEIZE, ENABLE, PTRACE_DETACH");
}

static void it_may_go_on_after_detach(struct dbg_peer *target)
{
	ok(dbg_peer_do(target, DBG_RUN, WORK_MS) == 0, "the target has work");
	ok(dbg_suspend_all(&kfd, target->pid) == QUEUES, "SNAPSHOT and SUSPEND go on after the detach");
	ok(dbg_peer_do(target, DBG_WAIT, 2 * WORK_MS) == -ETIMEDOUT, "the target's queues stand still");
	ok(dbg_resume_all(&kfd, target->pid) == QUEUES, "RESUME does, too");
	ok(dbg_peer_do(target, DBG_WAIT, 10 * WORK_MS) == 0, "the target's work ends");
}

static void a_third_process_may_not(struct dbg_peer *target, struct dbg_peer *third)
{
	ok(dbg_peer_do(third, DBG_SUSPEND, (uint64_t)target->pid) == -EPERM, "a third process is refused");
	ok(dbg_peer_do(third, DBG_RESUME, (uint64_t)target->pid) == -EPERM, "whatever it asks for");
	ok(dbg_suspend_all(&kfd, target->pid) == QUEUES && dbg_resume_all(&kfd, target->pid) == QUEUES,
	   "the first goes on");
}

static void what_one_debugger_may(void)
{
	struct dbg_peer target, third;

	if (!ok(start_target(&target) == 0 && start_debugger(&third) == 0, "a target and a third process"))
		return;
	only_a_tracer_may_enable(&target);
	it_may_go_on_after_detach(&target);
	a_third_process_may_not(&target, &third);
	ok(dbg_disable(&kfd, target.pid) == 0, "DISABLE");
	ok(dbg_suspend_all(&kfd, target.pid) == -EPERM, "and it is a stranger again");
	kill_and_reap(&third);
	dbg_peer_tell(&target, DBG_EXIT, 0);
	ok(dbg_ends(target.pid, KFD_SOON) == 0, "the target can end");
}

/* The stock driver takes it for the debugger, though it is refused, and writes to it when it is gone. */
static void a_refused_debugger_changes_nothing(void)
{
	struct dbg_peer target, third;

	if (!kfd_is_patched()) {
		skip("a debugger that is refused changes nothing", "the stock driver writes to freed memory");
		return;
	}
	if (!ok(start_target(&target) == 0 && start_debugger(&third) == 0, "a target and a third process"))
		return;
	ok(attach(&target) == KFD_RUNTIME_STATE_ENABLED, "the target is debugged");
	ok(dbg_peer_do(&third, DBG_ATTACH, (uint64_t)target.pid) == -EALREADY, "a second ENABLE is refused");
	a_third_process_may_not(&target, &third);
	dbg_peer_tell(&third, DBG_EXIT, 0);
	ok(dbg_ends(third.pid, KFD_SOON) == 0, "the third process ends");
	dbg_peer_tell(&target, DBG_EXIT, 0);
	ok(dbg_ends(target.pid, KFD_SOON) == 0, "and after it the target, debugged as it is");
}

static void a_file_is_its_openers_alone(void)
{
	struct kfd passed = { .fd = -1 };
	struct kfd_version_args version;
	int sockets[2];
	pid_t pid;

	if (!ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "a socket to pass a file over"))
		return;
	pid = fork();
	if (pid == 0) {
		kfd_send_file(sockets[1], open("/dev/kfd", O_RDWR));
		pause();
	}
	passed.fd = kfd_receive_file(sockets[0]);
	ok(passed.fd >= 0, "a process passes its file of the driver");
	ok(kfd_ioctl(&passed, KFD_IOC_VERSION, &version) == -EBADF, "which is of no use here");
	ok(dbg_disable(&passed, pid) == -EBADF, "for the debugger's calls neither");
	ok(kfd_ioctl(&kfd, KFD_IOC_VERSION, &version) == 0, "our own is");
	kill(pid, SIGKILL);
	ok(dbg_ends(pid, KFD_SOON) == 0, "the process ends");
	close(passed.fd);
	close(sockets[0]);
	close(sockets[1]);
}

/* A target whose queues, at work, another debugger than us has suspended. */
static int start_suspended(struct dbg_peer *target, struct dbg_peer *debugger)
{
	if (!ok(start_target(target) == 0 && start_debugger(debugger) == 0, "a target and its debugger"))
		return -ENODEV;
	ok(dbg_peer_do(debugger, DBG_ATTACH, (uint64_t)target->pid) == KFD_RUNTIME_STATE_ENABLED,
	   "which attaches");
	ok(dbg_peer_do(target, DBG_RUN, WORK_MS) == 0, "the target has work");
	ok(dbg_peer_do(debugger, DBG_SUSPEND, (uint64_t)target->pid) == QUEUES, "it is suspended");
	return 0;
}

static void work_ends_and_target_too(struct dbg_peer *target)
{
	ok(dbg_peer_do(target, DBG_WAIT, 10 * WORK_MS) == 0, "the target's work goes on and ends");
	dbg_peer_tell(target, DBG_EXIT, 0);
	ok(dbg_ends(target->pid, KFD_SOON) == 0, "the target can end");
}

static void a_killed_debugger_leaves_nothing_suspended(void)
{
	struct dbg_peer target, debugger;

	if (start_suspended(&target, &debugger) < 0)
		return;
	ok(dbg_peer_do(&target, DBG_WAIT, 2 * WORK_MS) == -ETIMEDOUT, "and stands still");
	kill_and_reap(&debugger);
	work_ends_and_target_too(&target);
}

static void a_debugger_that_closes_its_file_leaves_everything_suspended(void)
{
	struct dbg_peer target, debugger;

	if (start_suspended(&target, &debugger) < 0)
		return;
	ok(dbg_peer_do(&debugger, DBG_CLOSE, 0) == 0, "the debugger closes its file of the driver");
	ok(dbg_peer_do(&target, DBG_WAIT, 3 * WORK_MS) == -ETIMEDOUT, "the target still stands still");
	dbg_peer_tell(&debugger, DBG_EXIT, 0);
	ok(dbg_ends(debugger.pid, KFD_SOON) == 0, "the debugger ends");
	work_ends_and_target_too(&target);
}

static void a_killed_target_ends(void)
{
	struct dbg_peer target;

	if (!ok(start_target(&target) == 0, "a target"))
		return;
	ok(attach(&target) == KFD_RUNTIME_STATE_ENABLED && dbg_peer_do(&target, DBG_RUN, 60000) == 0 &&
		   dbg_suspend_all(&kfd, target.pid) == QUEUES,
	   "is debugged, has work, and is suspended");
	kill_and_reap(&target);
	ok(dbg_disable(&kfd, target.pid) == -ESRCH, "and is gone for the driver");
}

/* How a debugger keeps its target from hanging: it is told before the target's memory goes. */
static void a_target_that_exits_is_let_go_first(void)
{
	struct kfd_runtime_info info = { 0 };
	struct dbg_peer target;
	int status = 0;

	if (!ok(start_target(&target) == 0, "a target"))
		return;
	ok(ptrace(PTRACE_SEIZE, target.pid, 0, PTRACE_O_TRACEEXIT) == 0 &&
		   dbg_enable(&kfd, target.pid, wake[1], 0, &info) == 0,
	   "is traced, and debugged");
	dbg_peer_tell(&target, DBG_EXIT, 0);
	ok(waitpid(target.pid, &status, 0) == target.pid && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8),
	   "it stops before it ends");
	ok(dbg_disable(&kfd, target.pid) == 0, "DISABLE");
	ok(ptrace(PTRACE_CONT, target.pid, 0, 0) == 0 && dbg_ends(target.pid, KFD_SOON) == 0, "and it ends");
}

static ssize_t dots(void)
{
	char buffer[16];
	ssize_t n = read(wake[0], buffer, sizeof(buffer));

	return n < 0 ? 0 : n;
}

/* RUNTIME_ENABLE or RUNTIME_DISABLE of a process that is debugged. */
static void the_runtime_waits(struct dbg_peer *target, enum dbg_order order, const char *name, ssize_t wakes)
{
	dots();
	dbg_peer_tell(target, order, 0);
	ok(dbg_peer_result(target, DBG_SECOND) == -ETIMEDOUT, "%s of a debugged process blocks", name);
	ok(dots() == wakes, "its debugger is told %s", wakes ? "so" : "nothing, if it did not ask");
	ok(dbg_send_runtime(&kfd, target->pid) == 0, "the debugger says that it may go on");
	ok(dbg_peer_result(target, KFD_SOON) == 0, "and it does");
}

static void the_runtime_waits_for_the_debugger(uint64_t exceptions)
{
	struct dbg_peer target;
	uint64_t raised = 0;
	ssize_t wakes = exceptions != 0;

	if (!ok(dbg_peer_start(&target) == 0 && dbg_peer_do(&target, DBG_OPEN, 0) == 0,
		"a target without a runtime"))
		return;
	ok(dbg_attach(&kfd, target.pid, wake[1], exceptions) == KFD_RUNTIME_STATE_DISABLED, "is debugged");
	ok(dbg_suspend_all(&kfd, target.pid) == -EPERM, "SUSPEND needs a runtime");
	the_runtime_waits(&target, DBG_RUNTIME_ENABLE, "RUNTIME_ENABLE", wakes);
	ok(dbg_query_event(&kfd, target.pid, KFD_EC_PROCESS_RUNTIME, &raised) == (exceptions ? 0 : -EAGAIN) &&
		   raised == exceptions,
	   "there is %s event of it", exceptions ? "an" : "no");
	ok(dbg_peer_do(&target, DBG_CREATE, QUEUES) == 0 && dbg_suspend_all(&kfd, target.pid) == QUEUES &&
		   dbg_resume_all(&kfd, target.pid) == QUEUES,
	   "its queues can be suspended now");
	the_runtime_waits(&target, DBG_RUNTIME_DISABLE, "RUNTIME_DISABLE", wakes);
	ok(dbg_disable(&kfd, target.pid) == 0, "DISABLE");
	kill_and_reap(&target);
}

static void a_process_can_be_debugged_before_it_opens_the_driver(void)
{
	struct kfd_runtime_info info = { 0 };
	struct dbg_peer target;

	if (!ok(dbg_peer_start(&target) == 0, "a process without the driver"))
		return;
	ok(dbg_enable(&kfd, target.pid, wake[1], 0, &info) == -ESRCH, "ENABLE does not find it");
	ok(attach(&target) == KFD_RUNTIME_STATE_DISABLED, "but with ptrace it does");
	ok(dbg_peer_do(&target, DBG_OPEN, 0) == 0, "the process opens the driver");
	the_runtime_waits(&target, DBG_RUNTIME_ENABLE, "RUNTIME_ENABLE", 0);
	ok(dbg_peer_do(&target, DBG_CREATE, QUEUES) == 0 && dbg_suspend_all(&kfd, target.pid) == QUEUES,
	   "its first queues can be suspended");
	ok(dbg_disable(&kfd, target.pid) == 0, "DISABLE");
	kill_and_reap(&target);
}

int main(void)
{
	kfd.fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (!ok(kfd.fd >= 0 && pipe2(wake, O_NONBLOCK | O_CLOEXEC) == 0, "the driver opens"))
		return tap_done();
	what_one_debugger_may();
	a_refused_debugger_changes_nothing();
	a_file_is_its_openers_alone();
	a_killed_debugger_leaves_nothing_suspended();
	a_debugger_that_closes_its_file_leaves_everything_suspended();
	a_killed_target_ends();
	a_target_that_exits_is_let_go_first();
	the_runtime_waits_for_the_debugger(KFD_EC_PROCESS_RUNTIME);
	the_runtime_waits_for_the_debugger(0);
	a_process_can_be_debugged_before_it_opens_the_driver();
	ok(kfd_stat(0, "bad_addresses") == 0 && kfd_stat(0, "bad_restores") == 0, "nothing was mixed up");
	return tap_done();
}
