/* SPDX-License-Identifier: MIT */
/* From a 64-bit key to a pointer; open addressing, O(1). NULL is not a value. */
#ifndef GP_BASE_MAP_H
#define GP_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct gp_map_slot {
	uint64_t key;
	void *value;
};

struct gp_map {
	struct gp_map_slot *slots;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

int gp_map_put(struct gp_map *m, uint64_t key, void *value); /* -EEXIST, -ENOMEM */
void *gp_map_get(const struct gp_map *m, uint64_t key);
void *gp_map_remove(struct gp_map *m, uint64_t key); /* what was there, or NULL */
void gp_map_free(struct gp_map *m);

#endif
