/* SPDX-License-Identifier: MIT */
/*
 * The machine's AMD devices and queues as its files tell them, where no gpreemptd does.  Reads, and acts in a
 * scheduling session of its own, where the driver has these, on what this process may act on.
 */
#ifndef GP_LIB_LOCAL_H
#define GP_LIB_LOCAL_H

#include <gpreempt/gpreempt.h>

#define GP_CLASSES_FILE "/etc/gpreempt/classes.ini"

struct gp_local;

/* root: NULL, or a recorded tree. A classes.ini or environment that is wrong is left out; error says why. */
int gp_local_new(const char *root, char *error, size_t size, struct gp_local **ret);
void gp_local_free(struct gp_local *local);
/* As in struct gp_lib_ops. A queue keeps its handle from one call to the next; a gone queue's is not given
 * again. */
int gp_local_devices(struct gp_local *local, struct gp_device_info **ret);
int gp_local_queues(struct gp_local *local, struct gp_queue_info **ret);
/*
 * Stops or resumes queues of the last list, until local is freed.  status: NULL, or each one's.  The first
 * error is returned, and what there is to say of it is in why.  -ENODEV: nothing but gpreemptd can.
 */
int gp_local_set(struct gp_local *local, const uint64_t *queues, size_t n, uint32_t want, int32_t *status,
		 char *why, size_t size);

#endif
