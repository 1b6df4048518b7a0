// SPDX-License-Identifier: MIT
#include "backend/book.h"

void gp_book_init(struct gp_book *book, void (*wake)(void *arg), void *arg)
{
	*book = (struct gp_book){ .wake = wake, .wake_arg = arg };
	gp_list_init(&book->news);
}

void gp_book_forget(struct gp_book *book)
{
	book->wake_due = 0;
	gp_list_init(&book->news);
	__atomic_store_n(&book->guard, 0, __ATOMIC_RELEASE);
	gp_guard_wake(&book->guard);
}

gp_signals gp_book_lock(struct gp_book *book)
{
	return gp_guard_lock(&book->guard);
}

void gp_book_unlock(struct gp_book *book, gp_signals blocked)
{
	uint32_t wake = book->wake_due;

	book->wake_due = 0;
	gp_guard_give(&book->guard);
	if (wake && book->wake)
		book->wake(book->wake_arg);
	gp_guard_unblock(blocked);
}

static void tell(struct gp_book *book, struct gp_news *news, enum gp_own_event_kind kind)
{
	news->event = 1 + (uint32_t)kind;
	gp_list_append(&book->news, &news->line);
	book->wake_due = 1;
}

void gp_book_added(struct gp_book *book, struct gp_news *news)
{
	tell(book, news, GP_OWN_ADDED);
}

void gp_book_changed(struct gp_book *book, struct gp_news *news)
{
	if (!news->event)
		tell(book, news, GP_OWN_CHANGED);
}

int gp_book_removed(struct gp_book *book, struct gp_news *news)
{
	int is_unknown = news->event == 1 + GP_OWN_ADDED;

	if (news->event)
		gp_list_remove(&news->line);
	news->event = 0;
	if (!is_unknown)
		tell(book, news, GP_OWN_REMOVED);
	return !is_unknown;
}

struct gp_news *gp_book_next(struct gp_book *book, uint32_t *ret_kind)
{
	struct gp_news *news;

	if (gp_list_empty(&book->news))
		return NULL;
	news = gp_container(book->news.next, struct gp_news, line);
	*ret_kind = news->event - 1;
	gp_list_remove(&news->line);
	news->event = 0;
	return news;
}
