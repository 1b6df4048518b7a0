/* SPDX-License-Identifier: MIT */
/* The terminal of gpreempt top, by ncurses: lines go out, keys come in. */
#ifndef GP_CLI_TOP_SCREEN_H
#define GP_CLI_TOP_SCREEN_H

#include "cli/top_view.h"

/* What is no character. */
enum gp_top_key {
	GP_KEY_NONE = -1,
	GP_KEY_UP = 0x100,
	GP_KEY_DOWN,
	GP_KEY_LEFT,
	GP_KEY_RIGHT,
	GP_KEY_PAGE_UP,
	GP_KEY_PAGE_DOWN,
	GP_KEY_HOME,
	GP_KEY_END,
	GP_KEY_BACKSPACE,
	GP_KEY_REDRAW
};

#define GP_KEY_ESCAPE 27

/* Whether the locale and the terminal have the blocks that sparklines are made of. */
int gp_top_has_unicode(void);
/* 0; -ENOTTY: standard input and output are no terminal; -ENOENT: nobody here knows such a
 * terminal, or it cannot be drawn on. */
int gp_top_screen_open(void);
void gp_top_screen_size(size_t *ret_width, size_t *ret_height);
void gp_top_screen_draw(const struct gp_top_line *lines, size_t n);
/* The next that was pressed; GP_KEY_NONE: none. */
int gp_top_screen_key(void);
/* The terminal is as it was. */
void gp_top_screen_close(void);

#endif
