/* SPDX-License-Identifier: MIT */
/* Files built into the program: kinds "scenario", "device", "page" and "completion". */
#ifndef GP_STUDY_EMBED_H
#define GP_STUDY_EMBED_H

#include <stddef.h>

struct gp_embed {
	const char *kind;
	const char *name; /* the file's name without its ending */
	const char *text;
	size_t len;
};

extern const struct gp_embed gp_embeds[];
extern const size_t gp_nembeds;

#endif
