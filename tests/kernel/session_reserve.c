// SPDX-License-Identifier: MIT
/* bed: timeout=300 memory=4G param=cus=8 */
/*
 * A reservation: of 64 offline queues in 20 processes never more are on the run list than it says, so that
 * the run list is not over-subscribed and an online process that comes finds a slot at once; and all of them
 * get their turns.
 */
#include <errno.h>
#include <unistd.h>

#include "session.h"
#include "tap.h"

#define MS DBG_MS
#define SECOND DBG_SECOND
#define OFFLINE 20
#define MANY 4 /* of them have one queue more */
#define QUEUES 3
#define PERIOD_MS 100
#define ROUND 6 /* turns until everybody had one, at least */
#define LONG_MS 100000
#define SHORT_MS 20

static struct kfd kfd;
static struct dbg_peer offline[OFFLINE];

static uint32_t gpu(void)
{
	return kfd.gpus[0].gpu_id;
}

static uint32_t queues_of(int i)
{
	return QUEUES + (i < MANY);
}

static int start_offline(void)
{
	int r = 0;

	for (int i = 0; i < OFFLINE && r == 0; i++)
		r = session_peer(&offline[i], queues_of(i), LONG_MS);
	return r;
}

static void wrong_arguments(int fd)
{
	ok(session_reserve(fd, gpu(), 60, 50, 0, NULL) == -EINVAL &&
		   session_reserve(fd, gpu(), 101, 0, 0, NULL) == -EINVAL &&
		   session_reserve(fd, gpu(), UINT32_MAX, 2, 0, NULL) == -EINVAL,
	   "parts that are more than the whole are refused");
	ok(session_reserve(fd, gpu(), 50, 50, 9, NULL) == -EINVAL &&
		   session_reserve(fd, gpu(), 50, 50, 10001, NULL) == -EINVAL,
	   "and turns too short or too long");
	ok(session_reserve(fd, 1, 50, 50, 0, NULL) == -ENODEV, "and a GPU that is not there");
	ok(session_class(fd, offline[0].pid, 3) == -EINVAL && session_class(fd, 1, 1) == -ESRCH,
	   "and a class that is none, or of a process without queues");
}

/* The most queues in the run list that were seen in so many turns. */
static int64_t most_active(int64_t turns)
{
	int64_t most = 0, now, last;
	uint64_t end = kfd_now() + 60 * SECOND;

	kfd_settle(0); /* the device may not have come to the run list with what is reserved */
	last = kfd_stat(0, "cycles") + turns;
	while (kfd_stat(0, "cycles") < last && kfd_now() < end) {
		now = kfd_stat(0, "active");
		most = now > most ? now : most;
		kfd_sleep(MS);
	}
	return most;
}

/* What the process had that had least for each queue, of what the one had that had most; in percent. */
static int64_t evenness(const int64_t *before)
{
	int64_t least = INT64_MAX, most = 0, had;

	for (int i = 0; i < OFFLINE; i++) {
		had = (kfd_busy(0, kfd_proc_value(offline[i].pid, "pasid")) - before[i]) / queues_of(i);
		note("process %d: %lld wave-ms for a queue", i, (long long)(had / (int64_t)MS));
		least = had < least ? had : least;
		most = had > most ? had : most;
	}
	return most ? 100 * least / most : 0;
}

static void had_before(int64_t *ret)
{
	for (int i = 0; i < OFFLINE; i++)
		ret[i] = kfd_busy(0, kfd_proc_value(offline[i].pid, "pasid"));
}

static void offline_is_limited(int fd)
{
	struct kfd_session_reservation got;
	int64_t before[OFFLINE], most, quanta;
	int r = session_reserve(fd, gpu(), 50, 50, PERIOD_MS, &got);

	ok(r == 0 && got.max_queues == kfd.gpus[0].num_cp_queues / 2 && got.max_processes > 0,
	   "half of the slots are reserved: %u queues of %u processes are left", got.max_queues,
	   got.max_processes);
	quanta = kfd_stat(0, "quanta");
	had_before(before);
	most = most_active(12 * ROUND);
	ok(most == got.max_queues, "never are more of the 64 active (%lld)", (long long)most);
	ok(kfd_stat(0, "quanta") == quanta, "the run list is not over-subscribed any more");
	most = evenness(before);
	ok(most >= 50, "all take turns: for a queue the least is %lld %% of the most", (long long)most);
}

static void set_all_but_the_first(int fd, uint32_t want)
{
	for (int i = 0; i < OFFLINE; i++)
		for (uint32_t queue = 1; queue < queues_of(i); queue++)
			session_one(fd, offline[i].pid, queue, want);
}

/* Fewer processes than queues have a place: with a queue each it is they that count. */
static void processes_are_limited(int fd)
{
	struct kfd_session_reservation all, half;
	int64_t most, quanta;
	int r;

	set_all_but_the_first(fd, KFD_SESSION_STOP);
	r = session_reserve(fd, gpu(), 0, 100, PERIOD_MS, &all);
	if (r == 0)
		r = session_reserve(fd, gpu(), 50, 50, PERIOD_MS, &half);
	ok(r == 0 && half.max_processes == all.max_processes / 2 && half.max_processes < half.max_queues,
	   "and half of the processes, %u of %u", half.max_processes, all.max_processes);
	quanta = kfd_stat(0, "quanta");
	most = most_active(2 * ROUND);
	ok(most == half.max_processes && kfd_stat(0, "quanta") == quanta,
	   "never are more of the 20 active, with a queue each (%lld)", (long long)most);
	set_all_but_the_first(fd, KFD_SESSION_RUN);
}

static void online_finds_a_slot(int fd)
{
	struct dbg_peer online;
	uint64_t begin;
	int r = session_peer(&online, 1, 0);

	ok(r == 0 && session_class(fd, online.pid, KFD_SESSION_CLASS_ONLINE) == 0 &&
		   session_state(fd, online.pid, 0) == KFD_SESSION_ACTIVE,
	   "a process that is online does not wait for its turn");
	begin = kfd_now();
	ok(dbg_peer_do(&online, DBG_RUN, SHORT_MS) == 0 && dbg_peer_do(&online, DBG_WAIT, DBG_SOON_MS) == 0,
	   "and works at once (%llu ms for %d)", (unsigned long long)((kfd_now() - begin) / MS), SHORT_MS);
	ok(dbg_peer_do(&online, DBG_CREATE, 11) == 0 &&
		   session_state(fd, online.pid, 11) == KFD_SESSION_ACTIVE,
	   "so do all of as many queues as there are slots for it");
	ok(kfd_stat(0, "active") <= kfd.gpus[0].num_cp_queues,
	   "with no more in the run list than slots (%lld)", (long long)kfd_stat(0, "active"));
	dbg_peer_tell(&online, DBG_EXIT, 0);
	dbg_ends(online.pid, KFD_SOON);
}

static void stopped_queues_have_no_turn(int fd)
{
	for (int i = 2; i < OFFLINE; i++)
		session_all(fd, offline[i].pid, KFD_SESSION_STOP);
	ok(kfd_wait_stat(0, "active", queues_of(0) + queues_of(1), KFD_SOON) == 0,
	   "queues that are stopped leave their turns to others");
	for (int i = 2; i < OFFLINE; i++)
		session_all(fd, offline[i].pid, KFD_SESSION_RUN);
}

static void no_place_at_all(int fd)
{
	ok(session_reserve(fd, gpu(), 100, 0, PERIOD_MS, NULL) == 0 && kfd_stat(0, "active") == 0,
	   "with all of the slots reserved no offline queue is active");
	ok(session_reserve(fd, gpu(), 0, 0, 0, NULL) == 0 &&
		   kfd_wait_stat(0, "active", OFFLINE * QUEUES + MANY, KFD_SOON) == 0,
	   "without a reservation all of them are");
}

static void ends_with_its_session(void)
{
	int one = session_open(&kfd, 0), two = session_open(&kfd, 0);

	ok(session_reserve(one, gpu(), 50, 50, PERIOD_MS, NULL) == 0 &&
		   session_reserve(two, gpu(), 50, 50, PERIOD_MS, NULL) == -EBUSY,
	   "there is one reservation of a GPU");
	ok(session_class(one, offline[0].pid, KFD_SESSION_CLASS_OFFLINE) == 0 &&
		   session_class(two, offline[0].pid, KFD_SESSION_CLASS_ONLINE) == -EBUSY,
	   "and one word on what a process is");
	close(one);
	ok(kfd_wait_stat(0, "active", OFFLINE * QUEUES + MANY, KFD_SOON) == 0,
	   "all queues are active when the session ends");
	ok(session_class(two, offline[0].pid, KFD_SESSION_CLASS_ONLINE) == 0,
	   "and another one may have its say");
	close(two);
}

static void needs_an_administrator(void)
{
	int fd;

	if (kfd_open(&kfd) < 0 || setuid(65534) < 0)
		_exit(1);
	fd = session_open(&kfd, 0);
	ok(session_reserve(fd, gpu(), 50, 50, 0, NULL) == -EPERM, "who is no administrator cannot reserve");
	ok(session_class(fd, offline[0].pid, KFD_SESSION_CLASS_ONLINE) == -EPERM &&
		   session_class(fd, 0, KFD_SESSION_CLASS_ONLINE) == -EPERM,
	   "nor say what others are, or what he is himself");
}

int main(void)
{
	int fd, r;

	if (session_missing())
		return 0;
	r = kfd_open(&kfd);
	fd = session_open(&kfd, 0);
	if (r == 0 && fd >= 0)
		r = start_offline();
	if (!ok(r == 0 && fd >= 0, "there are 64 busy queues of 20 processes (%d, %d)", r, fd))
		return tap_done();
	wrong_arguments(fd);
	offline_is_limited(fd);
	processes_are_limited(fd);
	online_finds_a_slot(fd);
	stopped_queues_have_no_turn(fd);
	no_place_at_all(fd);
	close(fd);
	ends_with_its_session();
	tap_in_child(needs_an_administrator);
	ok(kfd_stat(0, "bad_restores") == 0, "no save area was spoilt");
	return tap_done();
}
