/* SPDX-License-Identifier: MIT */
/*
 * The GPUs there are: those that the driver shows, and simulated ones that agents tell of.  A
 * number is a device's as long as it is there; a GPU that comes back has its old one.
 */
#ifndef GP_DAEMON_DEVICES_H
#define GP_DAEMON_DEVICES_H

#include <stdbool.h>

#include "discover/discover.h"

#define GP_MOST_DEVICES 64
#define GP_MOST_TOLD 8 /* simulated ones, of one user */
#define GP_NO_DEVICE UINT32_MAX

struct gp_device {
	uint32_t number;
	uint32_t gpu_id; /* the driver's, or the simulated GPU's own */
	bool is_simulated;
	uint32_t caps;    /* GP_CAP_* that it has by itself */
	bool is_there;    /* the last scan found it, or agents use it */
	uint64_t account; /* who told of it first: to others it is another one, */
	uint64_t key[2];  /* but for those who know what only it tells its programs; 0: nobody does */
	uint32_t agents;  /* that told of it */
	struct gp_device_info info;
};

struct gp_devices {
	struct gp_device *by_number[GP_MOST_DEVICES];
};

void gp_devices_free(struct gp_devices *d);
void gp_devices_scanned(struct gp_devices *d, const struct gp_found *found);
/* A simulated one, for one more agent of that account. -EINVAL: it is not simulated; -ENOSPC, -ENOMEM. */
int gp_devices_told(struct gp_devices *d, uint64_t account, const struct gp_device_info *info,
		    const uint64_t key[2], struct gp_device **ret);
void gp_devices_left(struct gp_device *device); /* by one of its agents */
bool gp_device_is_kfd(const struct gp_device *device);
/* NULL: there is none, or not any more. */
struct gp_device *gp_devices_at(const struct gp_devices *d, uint32_t number);
/* One that the driver shows; GP_NO_DEVICE. */
uint32_t gp_devices_number(const struct gp_devices *d, uint32_t gpu_id);

#endif
