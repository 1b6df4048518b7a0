/* SPDX-License-Identifier: MIT */
/* The page of gpreempt top, as lines of text: what is on a screen of a given size.  Pure: no terminal, no
 * clock. */
#ifndef GP_CLI_TOP_VIEW_H
#define GP_CLI_TOP_VIEW_H

#include "cli/columns.h"
#include "cli/top_sample.h"

/* How a line looks. Colours only add to what the words say. */
enum gp_top_style { GP_TOP_PLAIN, GP_TOP_BAR, GP_TOP_HEADING, GP_TOP_ONLINE, GP_TOP_STOPPED, GP_TOP_WRONG };

#define GP_TOP_TEXT 1024
#define GP_TOP_WIDEST 300 /* columns */

struct gp_top_line {
	enum gp_top_style style;
	int chosen; /* it is the one that the keys are about */
	char text[GP_TOP_TEXT];
};

struct gp_top_view {
	size_t width, height;
	int unicode;            /* 0: ASCII alone */
	uint64_t slot;          /* of now: time / gp_top.slot_ns */
	uint64_t client;        /* that is chosen, by its handle, */
	uint32_t client_device; /* and on this device; one can be on several */
	uint32_t device;        /* that is chosen */
	size_t first;           /* client shown */
	const char *clock;      /* "12:34:56" */
	const char *rights;     /* what one may do here, if it is less than all */
	const char *status;     /* what came of the last key, a question, or what is wrong; or empty */
	int status_wrong;
	const char *keys;
	const char *help; /* lines that stand in the place of all but the title and the keys; NULL: none do */
};

/* The client that is chosen; NULL: there is none. */
const struct gp_client_info *gp_top_chosen(const struct gp_top *t, const struct gp_top_view *v);
/* Chooses what is there if what was chosen has gone, and scrolls so that it is seen. */
void gp_top_settle(const struct gp_top *t, struct gp_top_view *v);
/* The client so many lines further down, or up; the next device, or the one before. */
void gp_top_move(const struct gp_top *t, struct gp_top_view *v, int lines);
void gp_top_move_device(const struct gp_top *t, struct gp_top_view *v, int places);

/* All lines of the screen: v->height of them. */
void gp_top_draw(const struct gp_top *t, const struct gp_top_view *v, struct gp_top_line *lines);

/* The table of devices. sparks: so many places of a line that shows how long stops took; 0: none. */
void gp_top_devices_table(struct gp_columns *table, const struct gp_top *t, uint64_t slot, size_t sparks,
			  int unicode);
/*
 * Latencies as a line of n places, the last of which is this slot's: higher is longer, by orders of magnitude
 * from 10 us on; a space where nothing was stopped.
 */
const char *gp_top_sparks(const struct gp_top_latency *l, uint64_t slot, size_t n, int unicode,
			  char text[GP_TOP_TEXT]);

#endif
