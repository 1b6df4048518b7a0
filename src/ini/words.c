// SPDX-License-Identifier: MIT
#include "ini/words.h"

#include <stdio.h>
#include <string.h>

#define SEPARATORS " ,\t"
#define WORD 64

bool gp_word_next(const char **list, char *word, size_t size)
{
	const char *begin = *list + strspn(*list, SEPARATORS);
	size_t len = strcspn(begin, SEPARATORS);

	*list = begin + len;
	if (!len)
		return false;
	if (len >= size)
		len = size - 1;
	memcpy(word, begin, len);
	word[len] = '\0';
	return true;
}

int gp_word_find(const char *list, const char *word)
{
	char candidate[WORD];

	for (int i = 0; gp_word_next(&list, candidate, sizeof(candidate)); i++)
		if (!strcmp(candidate, word))
			return i;
	return -1;
}

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Letters to insert, remove or change to make one word of the other. */
static size_t distance(const char *a, const char *b)
{
	size_t cost[WORD + 1], len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		cost[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = cost[0];

		cost[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t above = cost[j];

			cost[j] = least(above + 1, cost[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return cost[len];
}

bool gp_word_near(const char *list, const char *word, char *near, size_t size)
{
	const size_t len = strlen(word);
	size_t best = len > 3 ? 3 : 2;
	char candidate[WORD];
	bool found = false;

	while (gp_word_next(&list, candidate, sizeof(candidate))) {
		/* A beginning, such as prio, is as good as one wrong letter. */
		size_t d = strncmp(candidate, word, len) || len < 3 ? distance(word, candidate) : 1;

		if (d >= best)
			continue;
		best = d;
		found = true;
		snprintf(near, size, "%s", candidate);
	}
	return found;
}

const char *gp_text_begin(const char *text)
{
	return strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3;
}
