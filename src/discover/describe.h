/* SPDX-License-Identifier: MIT */
/* What was found of a queue, in the words of struct gp_queue_info: for the daemon and for the library. */
#ifndef GP_DISCOVER_DESCRIBE_H
#define GP_DISCOVER_DESCRIBE_H

#include "discover/discover.h"

/*
 * Fills in pid, ids, kind, priority, ring, active, what is known of these and from where, and the place; the
 * rest stays as it is.  client: NULL if nothing is known of it.  with_ring: whether addresses are the
 * reader's to see.
 */
void gp_describe_queue(const struct gp_found_queue *queue, const struct gp_found_client *client,
		       int with_ring, struct gp_queue_info *ret);
/* The driver's name, ids and sizes of a device, its number and its PCI address; the rest is zero. */
void gp_describe_device(const struct gp_found_device *device, uint32_t number, struct gp_device_info *ret);
uint32_t gp_describe_caps(const struct gp_found_device *device); /* GP_CAP_* that it has, whoever uses them */
/* The number of a device in the list of devices; UINT32_MAX: it is not in it. */
uint32_t gp_found_device_number(const struct gp_found *found, uint32_t gpu_id);

#define GP_PLACE_LABEL 70
#define GP_PLACE_CUT "..." /* what a longer name ends with: so it is not taken for a whole one */
#define GP_PLACE_ID 12
/*
 * Where it runs: "container NAME ID", "pod POD/NAME ID" or "pod UID ID", of the id as many digits as people
 * use; "container ID" with all of them if nobody told a name; empty outside.  client may be NULL.
 */
void gp_describe_place(const struct gp_found_client *client, char *ret, size_t size);

#endif
