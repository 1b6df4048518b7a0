/* SPDX-License-Identifier: MIT */
/*
 * A lock that somebody else's process can live with: every signal is blocked while it
 * is held, so a handler may take it too, and no holder is cancelled; and a child in which
 * its holder does not exist any more sets it to 0.
 */
#ifndef GP_BACKEND_GUARD_H
#define GP_BACKEND_GUARD_H

#include <stdint.h>

/* The signals that a thread has blocked, as the kernel keeps them. */
typedef uint64_t gp_signals;

gp_signals gp_guard_lock(uint32_t *guard); /* what gp_guard_unlock() puts back */
void gp_guard_unlock(uint32_t *guard, gp_signals blocked);

/* Until gp_guard_unblock() this thread is not cancelled, but handlers run. */
gp_signals gp_guard_stay(void);

/* Its halves. */
gp_signals gp_guard_block(void);
void gp_guard_unblock(gp_signals blocked);
void gp_guard_take(uint32_t *guard);
void gp_guard_give(uint32_t *guard);

/* Sleeps while *word is value, or less long: look again. */
void gp_guard_wait(uint32_t *word, uint32_t value);
void gp_guard_wake(uint32_t *word);

#endif
