// SPDX-License-Identifier: MIT
#include "backend/guard.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GUARD_FREE, GUARD_HELD, GUARD_WAITED_FOR };

/* Neither is a point at which a thread can be cancelled: syscall() is none. */
void gp_guard_wait(uint32_t *word, uint32_t value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void gp_guard_wake(uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void gp_guard_take(uint32_t *guard)
{
	uint32_t seen = GUARD_FREE;

	if (__atomic_compare_exchange_n(guard, &seen, GUARD_HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(guard, GUARD_WAITED_FOR, __ATOMIC_ACQUIRE) != GUARD_FREE)
		gp_guard_wait(guard, GUARD_WAITED_FOR);
}

void gp_guard_give(uint32_t *guard)
{
	if (__atomic_exchange_n(guard, GUARD_FREE, __ATOMIC_RELEASE) == GUARD_WAITED_FOR)
		gp_guard_wake(guard);
}

/*
 * All but 33, with which the C library makes every thread take part in setuid(): its handler makes one
 * system call and returns, so it may run anywhere, and setuid() never waits for a lock of ours.  32 is among
 * them, though sigprocmask() would leave it out: it is how a thread is cancelled asynchronously, which would
 * take the guard along.  The thread is cancelled as soon as the signal is let in.
 */
#define CANCEL_SIGNAL (1ull << (32 - 1))
#define ALL_SIGNALS (~(1ull << (33 - 1)))

/* Not sigprocmask(): it leaves out 32, and is three times as long in the way of the application's calls. */
static gp_signals block(gp_signals signals)
{
	gp_signals blocked = 0;

	(void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &signals, &blocked, sizeof(signals));
	return blocked;
}

gp_signals gp_guard_block(void)
{
	return block(ALL_SIGNALS);
}

gp_signals gp_guard_stay(void)
{
	return block(CANCEL_SIGNAL);
}

void gp_guard_unblock(gp_signals blocked)
{
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof(blocked));
}

gp_signals gp_guard_lock(uint32_t *guard)
{
	gp_signals blocked = gp_guard_block();

	gp_guard_take(guard);
	return blocked;
}

void gp_guard_unlock(uint32_t *guard, gp_signals blocked)
{
	gp_guard_give(guard);
	gp_guard_unblock(blocked);
}
