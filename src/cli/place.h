/* SPDX-License-Identifier: MIT */
/* Where a process runs, as a list says it (discover/describe.h): shown, and chosen by --container. */
#ifndef GP_CLI_PLACE_H
#define GP_CLI_PLACE_H

#include <stddef.h>
#include <stdint.h>

#define GP_PLACE 96 /* as in struct gp_queue_info */
#define GP_PLACE_TEXT 48

/* The name, or of an id as much as people use: "trainer", "3f2a9c81d7e0", "pod 5c1e...". */
const char *gp_place_text(const char *place, char text[GP_PLACE_TEXT]);

/* The places of the items of an array. */
struct gp_places {
	const char *first;
	size_t stride, n;
};

#define gp_places_of(items, n_) \
	&(const struct gp_places) \
	{ \
		.first = (items)->place, .stride = sizeof(*(items)), .n = (n_) \
	}

/*
 * The one among them that is called so, into ret[GP_PLACE]: by its name, either part of "POD/NAME", or the
 * first digits of its id.  -1 to go on, else the exit code, after a complaint that names what there is.
 */
int gp_place_choose(const char *word, const struct gp_places *places, char *ret);

/* Adds to a complaint about a pid whom else it means, inside a container: "; 17 is also PID 158036 (container
 * trainer)". */
void gp_place_hint(uint32_t pid, uint32_t host_pid, const char *place, char *text, size_t size);

#endif
