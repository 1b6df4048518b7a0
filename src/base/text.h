/* SPDX-License-Identifier: MIT */
/*
 * Text that others wrote, before it reaches a terminal, a log or JSON: whatever the bytes were, it is UTF-8
 * afterwards, on one line, and what is seen is what is there.
 */
#ifndef GP_BASE_TEXT_H
#define GP_BASE_TEXT_H

#include <stddef.h>

/*
 * Copies len bytes, cut to fit but never within a character, and ends them with a NUL; the bytes written
 * before it.  A control character, one that changes the direction or the line of what follows, and a byte
 * that belongs to no character become '?'.  A character that the end of from cuts is left out.  to may be
 * from; size is at least 1.
 */
size_t gp_text_copy(char *to, size_t size, const char *from, size_t len);

/* The same in place, as the last thing done to a text: what was cut by then is cut before the character. */
void gp_text_clean(char *text);

/* Columns of a terminal that a clean text takes: a Chinese character has two, one that joins the last none.
 */
size_t gp_text_width(const char *text);
/* How many of its bytes take at most so many columns. */
size_t gp_text_fit(const char *text, size_t columns);

#endif
