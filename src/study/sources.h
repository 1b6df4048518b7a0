/* SPDX-License-Identifier: MIT */
/* Where scenarios, devices and traces come from: built in, or files. */
#ifndef GP_STUDY_SOURCES_H
#define GP_STUDY_SOURCES_H

#include "study/embed.h"
#include "study/parse.h"

/* Names are compared without case; NULL: not built in. */
const struct gp_embed *gp_embed_find(const char *kind, const char *name);
/* Names of a kind, as "a b c". */
void gp_embed_list(const char *kind, char *list, size_t size);
/* The same, and of "policy" and "config". */
void gp_source_names(const char *kind, char *list, size_t size);
/* What has a '/' or ends in .ini is a file, whatever is built in. */
int gp_is_path(const char *name);

/* What a scenario was made of. */
struct gp_sources {
	struct gp_device_file device;
	char *text; /* the scenario file, owned */
};

/* Scenario by built-in name or file. */
int gp_sources_scenario(struct gp_sources *src, const char *name, struct gp_scenario *ret,
			struct gp_diag *diag);
/* A cluster's file. */
int gp_sources_cluster(struct gp_sources *src, const char *path, struct gp_cluster *ret,
		       struct gp_diag *diag);
/* Another device for it, by built-in name or file. */
int gp_sources_device(struct gp_sources *src, const char *name, struct gp_scenario *sc, struct gp_diag *diag);
/* Another policy for it, by built-in name or file: what has a '/' or ends in .so. */
int gp_sources_policy(const char *name, struct gp_scenario *sc, struct gp_diag *diag);
void gp_sources_free(struct gp_sources *src);

#endif
