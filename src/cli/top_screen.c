// SPDX-License-Identifier: MIT
#include "cli/top_screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* a key that sends more than that one sends it at once */
#define CTRL_L 12

static SCREEN *screen;

/* The console of Linux has the letters of UTF-8, and few of its blocks. */
int gp_top_has_unicode(void)
{
	const char *term = getenv("TERM");

	(void)setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8") &&
	       (!term || (strncmp(term, "linux", 5) && strncmp(term, "vt", 2) && strcmp(term, "dumb")));
}

/* Cyan and yellow are told apart whatever colours one does not see; red and green are not used. */
static void begin_colors(void)
{
	const char *none = getenv("NO_COLOR");

	if ((none && *none) || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(GP_TOP_ONLINE, COLOR_CYAN, -1);
	init_pair(GP_TOP_STOPPED, COLOR_YELLOW, -1);
}

/* One that can only add lines at its end shows all lines in one. */
static int can_draw(void)
{
	const char *move = tigetstr("cup");

	return move && move != (const char *)-1;
}

int gp_top_screen_open(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	(void)setlocale(LC_CTYPE, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENOENT;
	if (!can_draw()) {
		gp_top_screen_close();
		return -ENOENT;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	begin_colors();
	return 0;
}

void gp_top_screen_size(size_t *ret_width, size_t *ret_height)
{
	*ret_width = (size_t)COLS;
	*ret_height = (size_t)LINES;
}

/* Each is told from the others without colours too. */
static attr_t attributes_of(enum gp_top_style style)
{
	switch (style) {
	case GP_TOP_BAR:
		return A_REVERSE;
	case GP_TOP_HEADING:
		return A_UNDERLINE;
	case GP_TOP_ONLINE:
		return A_BOLD | COLOR_PAIR(GP_TOP_ONLINE);
	case GP_TOP_STOPPED:
		return COLOR_PAIR(GP_TOP_STOPPED);
	case GP_TOP_WRONG:
		return A_BOLD | A_REVERSE;
	default:
		return A_NORMAL;
	}
}

static void draw_line(const struct gp_top_line *line, int y)
{
	attr_t attributes = attributes_of(line->style) | (line->chosen ? A_REVERSE : 0);

	move(y, 0);
	clrtoeol();
	attrset((int)attributes);
	addstr(line->text);
	attrset(A_NORMAL);
	if (line->style == GP_TOP_BAR || line->chosen) /* to the end of the line */
		mvchgat(y, 0, -1, attributes & ~A_COLOR, (short)PAIR_NUMBER(attributes), NULL);
}

void gp_top_screen_draw(const struct gp_top_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		draw_line(&lines[i], (int)i);
	refresh();
}

int gp_top_screen_key(void)
{
	static const struct {
		int theirs, ours;
	} keys[] = { { ERR, GP_KEY_NONE },
		     { KEY_UP, GP_KEY_UP },
		     { KEY_DOWN, GP_KEY_DOWN },
		     { KEY_LEFT, GP_KEY_LEFT },
		     { KEY_RIGHT, GP_KEY_RIGHT },
		     { KEY_PPAGE, GP_KEY_PAGE_UP },
		     { KEY_NPAGE, GP_KEY_PAGE_DOWN },
		     { KEY_HOME, GP_KEY_HOME },
		     { KEY_END, GP_KEY_END },
		     { KEY_BACKSPACE, GP_KEY_BACKSPACE },
		     { '\b', GP_KEY_BACKSPACE },
		     { 127, GP_KEY_BACKSPACE },
		     { KEY_ENTER, '\n' },
		     { '\r', '\n' },
		     { KEY_RESIZE, GP_KEY_REDRAW },
		     { CTRL_L, GP_KEY_REDRAW } };
	int key = getch();

	if (key == CTRL_L)
		clearok(curscr, TRUE); /* others write to the terminal too: the next draws all of it */
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].theirs == key)
			return keys[i].ours;
	return key > 0 && key < 0x80 ? key : 0; /* one that means nothing here */
}

void gp_top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}
