/* SPDX-License-Identifier: MIT */
/* Makes the devices of a simulated GPU known to gpreemptd, before any program is on them. */
#ifndef GP_SIMGPU_KNOWN_H
#define GP_SIMGPU_KNOWN_H

#include "simgpu/conn.h"

struct gp_simknown {
	struct gp_simconn conn;
	const struct gp_device_info *devices; /* the caller's */
	uint32_t ndevices;
	const uint64_t *key; /* of two numbers, the caller's */
	uint32_t is_welcome;
	uint64_t greeted_ns;
	void (*say)(const char *line); /* NULL: nobody wants to know */
};

/* Where gpreemptd is the environment says. */
void gp_simknown_init(struct gp_simknown *k, const struct gp_device_info *devices, uint32_t ndevices,
		      const uint64_t *key, void (*say)(const char *line));
/* Looks for gpreemptd if it is time to, and hears what it says. */
void gp_simknown_turn(struct gp_simknown *k, uint64_t now_ns);
uint64_t gp_simknown_next_ns(const struct gp_simknown *k); /* when the next turn is due at the latest */
void gp_simknown_close(struct gp_simknown *k);

#endif
