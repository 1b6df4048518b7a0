/* SPDX-License-Identifier: MIT */
/* Settings of a section, as a table: name, kind of value, range, default and an example. */
#ifndef GP_INI_KEYS_H
#define GP_INI_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "ini/diag.h"

struct gp_key {
	const char *name;
	/* Reads a value into *field; complains at the place if it cannot. */
	int (*set)(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
	size_t offset; /* of the field in the section's object */
	uint64_t min;
	uint64_t max;
	const char *preset;  /* what it is when not given, as one would write it; NULL: nothing */
	const char *example; /* shown in complaints */
	const char *word;    /* a word that stands for word_value */
	uint64_t word_value;
	const char *choices; /* for gp_set_choice() */
	size_t size;         /* of the field, for text */
};

/* Fields of uint64_t. */
int gp_set_count(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_time(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_rate(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_percent(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_share(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_yes(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
/* A field of uint32_t: the position of the value in choices. */
int gp_set_choice(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
/* Fields of char[size]: a policy that is built in, a name, any text. */
int gp_set_policy(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_name(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);
int gp_set_text(const struct gp_key *key, const struct gp_place *at, const char *value, void *field);

/* Complains that word is none of the list, with the nearest one or all of them. */
int gp_complain_unknown(const struct gp_place *at, const char *what, const char *word, const char *list);
/* The keys' names as "a b c". */
void gp_keys_list(const struct gp_key *keys, size_t n, char *list, size_t size);

#endif
