/* SPDX-License-Identifier: MIT */
/*
 * The head of a book that a vendor's table keeps of the process's queues: its lock, and the line of what
 * events() has yet to tell.  A queue stands in it once, with what is newest; one that came and went in
 * between was never there.
 */
#ifndef GP_BACKEND_BOOK_H
#define GP_BACKEND_BOOK_H

#include "backend/guard.h"
#include "backend/own.h"
#include "base/list.h"

struct gp_book {
	uint32_t guard; /* over all of the book */
	uint32_t wake_due;
	void (*wake)(void *arg);
	void *wake_arg;
	struct gp_list news; /* oldest first */
};

/* Of a queue. */
struct gp_news {
	struct gp_list line;
	uint32_t event; /* 0: it is not in the line; else 1 + enum gp_own_event_kind */
	uint32_t reserved;
};

void gp_book_init(struct gp_book *book, void (*wake)(void *arg), void *arg);
void gp_book_forget(struct gp_book *book); /* in a child: who held the lock is not here */

/* With every signal blocked; unlocking wakes whoever waits for events, if some came. */
gp_signals gp_book_lock(struct gp_book *book);
void gp_book_unlock(struct gp_book *book, gp_signals blocked);

/* The rest is called with the lock held. */
void gp_book_added(struct gp_book *book, struct gp_news *news);
void gp_book_changed(struct gp_book *book, struct gp_news *news);
int gp_book_removed(struct gp_book *book, struct gp_news *news); /* 0: nobody was told that it was there */
/* The oldest, which leaves the line, and enum gp_own_event_kind of it; NULL: there is none. */
struct gp_news *gp_book_next(struct gp_book *book, uint32_t *ret_kind);

#endif
