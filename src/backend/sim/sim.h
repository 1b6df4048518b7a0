/* SPDX-License-Identifier: MIT */
/*
 * The simulated GPU as a backend.  Its time is whatever its owner says: the simulated
 * machine advances it event by event, and a real clock can drive it as well.  It adds
 * the host's part to the model: messages to agents and the time of driver calls.
 */
#ifndef GP_BACKEND_SIM_H
#define GP_BACKEND_SIM_H

#include <gpreempt/backend.h>

#include "backend/trial.h"
#include "model/gpu.h"

extern const struct gp_backend_ops gp_sim_ops;

/* gp_backend_opts.params; without it, one preset device with all it can do. */
struct gp_sim_params {
	const struct gpm_device *device; /* copied */
	uint32_t devices;
	uint32_t caps;           /* of each device; 0: all it has */
	uint64_t seed;           /* of the calls' lengths */
	uint64_t yield_slice_ns; /* 0: the device's */
};

struct gp_sim_queue_opts {
	uint64_t client;
	const char *client_name;
	uint32_t device;
	uint32_t client_class;
	uint32_t priority;
	uint32_t shim; /* enum gpm_shim */
	uint32_t depth;
	uint32_t reserved;
};

/* What the device and its model can do together. */
uint32_t gp_sim_caps(const struct gpm_device *dev);

int gp_sim_queue_add(struct gp_backend *be, const struct gp_sim_queue_opts *opts, uint64_t *ret_queue);
/*
 * The queue takes no more work and goes when the device has let go of it: gp_sim_queue() is NULL then, and
 * its commands are the caller's again.
 */
int gp_sim_queue_remove(struct gp_backend *be, uint64_t queue);
void gp_sim_set_class(struct gp_backend *be, uint64_t client, uint32_t client_class);
/* The command is the caller's, and stays where it is until it is finished. */
int gp_sim_submit(struct gp_backend *be, uint64_t queue, struct gpm_cmd *cmd);
struct gpm_cmd *gp_sim_finished(struct gp_backend *be); /* NULL: no more */

/* When something happens next; the time may be advanced to that, and no further. */
uint64_t gp_sim_next(const struct gp_backend *be);
void gp_sim_advance(struct gp_backend *be, uint64_t now_ns);
/* Nobody asks anything of it before limit_ns: gp_sim_next() is then no instant that only kernels pass by. */
void gp_sim_run(struct gp_backend *be, uint64_t limit_ns);

struct gpm_gpu *gp_sim_gpu(struct gp_backend *be, uint32_t device);
struct gpm_queue *gp_sim_queue(struct gp_backend *be, uint64_t queue); /* NULL: there is none */
/* When the driver was first called for the want under way on this queue; 0: not yet. */
uint64_t gp_sim_called_ns(struct gp_backend *be, uint64_t queue);

/*
 * On a simulated MI308X: a kernel that fills the device is stopped in the middle and resumed, ten
 * times.  It stands still while it is stopped, goes on afterwards, and none of its work is lost or
 * done twice.  Times are the model's; progress is in microseconds of the kernel.
 * 0; -EIO: not so; -ENOMEM.
 */
int gp_sim_try_running(struct gp_trial *ret);

#endif
