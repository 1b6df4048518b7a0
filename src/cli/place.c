// SPDX-License-Identifier: MIT
#include "cli/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "discover/describe.h"
#include "ini/words.h"

#define HEX "0123456789abcdef"
#define ID_DIGITS 64
#define MOST_NAMED 8

/* Its parts; what is not there is empty. */
struct place {
	char label[96], id[96];
	int is_pod;
};

static struct place parse(const char *text)
{
	struct place p = { .is_pod = !strncmp(text, "pod ", 4) };
	const char *rest = strchr(text, ' '), *last;

	rest = rest ? rest + 1 : text;
	last = strrchr(rest, ' ');
	if (last)
		snprintf(p.id, sizeof(p.id), "%s", last + 1);
	else if (strspn(rest, HEX) == ID_DIGITS)
		snprintf(p.id, sizeof(p.id), "%s", rest);
	if (last || !p.id[0])
		snprintf(p.label, sizeof(p.label), "%.*s", last ? (int)(last - rest) : 95, rest);
	return p;
}

/* A pod that is known by its uid alone says so. */
static int is_bare_pod(const struct place *p)
{
	return p->is_pod && !strchr(p->label, '/');
}

const char *gp_place_text(const char *place, char text[GP_PLACE_TEXT])
{
	const struct place p = parse(place);

	if (p.label[0])
		snprintf(text, GP_PLACE_TEXT, "%s%.43s", is_bare_pod(&p) ? "pod " : "", p.label);
	else
		snprintf(text, GP_PLACE_TEXT, "%.*s", GP_PLACE_ID, p.id);
	return text;
}

static enum gp_called match(const struct place *p, const char *word)
{
	return gp_container_called(p->label, p->id, word);
}

/* Another name may begin like it: what was cut off is not known. */
static int may_be(const struct place *p, const char *word)
{
	size_t kept = GP_PLACE_LABEL - strlen(GP_PLACE_CUT);

	return strlen(p->label) == GP_PLACE_LABEL && !strcmp(p->label + kept, GP_PLACE_CUT) &&
	       !strncmp(p->label, word, kept);
}

static const char *at(const struct gp_places *l, size_t i)
{
	return l->first + i * l->stride;
}

/* The first of its kind in the list, and called so at least as well as that. */
static int is_new(const struct gp_places *l, size_t i, const char *word, enum gp_called least)
{
	const struct place p = parse(at(l, i));

	if (!at(l, i)[0] || (word && match(&p, word) < least))
		return 0;
	for (size_t j = 0; j < i; j++)
		if (!strcmp(at(l, j), at(l, i)))
			return 0;
	return 1;
}

/* Those that are called so (NULL: all), once each, as "trainer (3f2a...), ..."; how many. */
static size_t name_places(const struct gp_places *l, const char *word, enum gp_called least, char *text,
			  size_t size)
{
	size_t count = 0, used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < l->n; i++) {
		const struct place p = parse(at(l, i));

		if (!is_new(l, i, word, least))
			continue;
		if (count++ >= MOST_NAMED || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, word && p.label[0] ? "%s%s (%s)" : "%s%s",
					 count > 1 ? ", " : "", p.label[0] ? p.label : p.id, p.id);
	}
	if (count > MOST_NAMED && used < size)
		snprintf(text + used, size - used, ", ...");
	return count;
}

static int complain_none(const char *word, const struct gp_places *l)
{
	char there[512], near[96];

	for (size_t i = 0; i < l->n; i++) {
		const struct place p = parse(at(l, i));

		if (may_be(&p, word))
			return gp_fail(
				GP_EXIT_FAILED,
				"--container %s: a name so long is not told whole; if this one is meant, "
				"name it by its id: --container %s",
				word, p.id);
	}
	if (!name_places(l, NULL, GP_CALLED_OTHERWISE, there, sizeof(there)))
		return gp_fail(GP_EXIT_FAILED, "--container %s: no container that you may see has GPU queues",
			       word);
	if (gp_word_near(there, word, near, sizeof(near)))
		return gp_fail(GP_EXIT_FAILED,
			       "--container %s: no such container with GPU queues; did you mean %s?", word,
			       near);
	return gp_fail(GP_EXIT_FAILED, "--container %s: no such container with GPU queues; there are %s",
		       word, there);
}

int gp_place_choose(const char *word, const struct gp_places *l, char *ret)
{
	const char *found = NULL;
	char several[512];
	enum gp_called best = GP_CALLED_OTHERWISE;

	for (size_t i = 0; i < l->n; i++) {
		const struct place p = parse(at(l, i));
		enum gp_called m = at(l, i)[0] ? match(&p, word) : GP_CALLED_OTHERWISE;

		if (m <= best)
			continue;
		best = m;
		found = at(l, i);
	}
	if (!found)
		return complain_none(word, l);
	if (name_places(l, word, best, several, sizeof(several)) > 1)
		return gp_fail(GP_EXIT_FAILED, "--container %s: which of them: %s?", word, several);
	snprintf(ret, GP_PLACE, "%s", found);
	return -1;
}

void gp_place_hint(uint32_t pid, uint32_t host_pid, const char *place, char *text, size_t size)
{
	char name[GP_PLACE_TEXT];
	size_t used = strlen(text);

	snprintf(text + used, size - used, "; %" PRIu32 " is also PID %" PRIu32 " (%s%s)", pid, host_pid,
		 place[0] ? "container " : "in a pid namespace of its own", gp_place_text(place, name));
}
