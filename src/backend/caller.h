/* SPDX-License-Identifier: MIT */
/* What an application's call to a driver comes with: memory that may be none, and a file that may be
 * another's. */
#ifndef GP_BACKEND_CALLER_H
#define GP_BACKEND_CALLER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* By which the kernel finds our memory: the process's own number is its first thread's, which may have gone.
 */
pid_t gp_this_thread(void);

/* True if all of it was copied. What is no memory is the driver's to say. */
int gp_caller_peek(const void *args, void *buffer, size_t size);
int gp_caller_poke(void *args, const void *buffer, size_t size);

/* The file by which programs reach a driver. */
struct gp_driver_file {
	uint64_t device; /* which it is, 0: not known */
	char path[256];
};

/* By the environment's variable, or usual. */
void gp_driver_file_init(struct gp_driver_file *file, const char *variable, const char *usual);
int gp_driver_file_is(struct gp_driver_file *file, int fd); /* takes no lock and needs none */

#endif
