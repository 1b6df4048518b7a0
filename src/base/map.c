// SPDX-License-Identifier: MIT
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>

static size_t home(const struct gp_map *m, uint64_t key)
{
	/* Fibonacci hashing; the highest bits are the mixed ones: as many of them as the size has. */
	return (size_t)((key * 0x9e3779b97f4a7c15ull) >> (__builtin_clzll(m->size) + 1));
}

/* The key's slot, or the empty one where it would go. */
static size_t find(const struct gp_map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

static int grow(struct gp_map *m)
{
	struct gp_map bigger = { .size = m->size ? m->size * 2 : 8, .used = m->used };

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].value)
			bigger.slots[find(&bigger, m->slots[i].key)] = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int gp_map_put(struct gp_map *m, uint64_t key, void *value)
{
	size_t i;
	int r;

	if (2 * (m->used + 1) > m->size) {
		r = grow(m);
		if (r < 0)
			return r;
	}
	i = find(m, key);
	if (m->slots[i].value)
		return -EEXIST;
	m->slots[i] = (struct gp_map_slot){ key, value };
	m->used++;
	return 0;
}

void *gp_map_get(const struct gp_map *m, uint64_t key)
{
	return m->size ? m->slots[find(m, key)].value : NULL;
}

void *gp_map_remove(struct gp_map *m, uint64_t key)
{
	size_t hole, i;
	void *value;

	if (!m->size)
		return NULL;
	hole = find(m, key);
	value = m->slots[hole].value;
	if (!value)
		return NULL;
	/* Close the gap: whoever could not sit at home may move back into the hole. */
	for (i = (hole + 1) & (m->size - 1); m->slots[i].value; i = (i + 1) & (m->size - 1)) {
		size_t wants = home(m, m->slots[i].key);

		if (((i - wants) & (m->size - 1)) < ((i - hole) & (m->size - 1)))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].value = NULL;
	m->used--;
	return value;
}

void gp_map_free(struct gp_map *m)
{
	free(m->slots);
	*m = (struct gp_map){ 0 };
}
