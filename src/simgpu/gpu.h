/* SPDX-License-Identifier: MIT */
/* A simulated GPU in a process of its own, in real time: programs connect to it, as simgpu/proto.h has it. */
#ifndef GP_SIMGPU_GPU_H
#define GP_SIMGPU_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "model/device.h"

struct gp_simgpu_opts {
	const char *name;                /* of the device */
	const struct gpm_device *device; /* copied */
	uint32_t devices;
	const char *path;
	uint64_t seed;
	int end_fd; /* readable: it ends */
	/* One line for each client that comes and goes; NULL: nobody wants to know. */
	void (*say)(const char *line);
};

#define GP_SIMGPU_MOST_DEVICES 16u
#define GP_SIMGPU_MOST_CLIENTS 64u

struct gp_simgpu;

/* It listens from here on. -errno and, in text, why not. */
int gp_simgpu_new(const struct gp_simgpu_opts *opts, struct gp_simgpu **ret, char *text, size_t size);
int gp_simgpu_run(struct gp_simgpu *gpu); /* until end_fd; -errno: it could not wait */
struct gp_simgpu *gp_simgpu_free(struct gp_simgpu *gpu);

#endif
