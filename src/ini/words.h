/* SPDX-License-Identifier: MIT */
/* Lists of words as "a b c", the word somebody probably meant, and where a text begins. */
#ifndef GP_INI_WORDS_H
#define GP_INI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The next word of a list separated by spaces or commas, copied into word, cut at
 * its size; moves *list on.  Returns false at the end.
 */
bool gp_word_next(const char **list, char *word, size_t size);
/* Position of a word in a list, -1 if it is not there. */
int gp_word_find(const char *list, const char *word);
/* Fills near with the word of the list that it begins, or that is one or two letters away; false if there is
 * none. */
bool gp_word_near(const char *list, const char *word, char *near, size_t size);
/* Behind the byte order mark that some editors put before a text. */
const char *gp_text_begin(const char *text);

#endif
