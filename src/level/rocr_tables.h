/* SPDX-License-Identifier: MIT */
/*
 * What ROCr gives a tool: tables of its functions, in an order that changes with their versions.  A table
 * begins with a version whose minor_id is the table's size in bytes; then come pointers.  Read in
 * hsa_api_trace.h and hsa_api_trace_version.h of ROCR-Runtime, which are C++: 5.2.3 (major ids 1, 1, 1) and
 * the releases of ROCm 6 and later (3, 2, 2).  A table that is none of these is not touched.
 */
#ifndef GP_LEVEL_ROCR_TABLES_H
#define GP_LEVEL_ROCR_TABLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t handle;
} gp_hsa_signal;

typedef struct {
	uint64_t handle;
} gp_hsa_agent;

/* What a program calls its queue: hsa_queue_t. */
struct gp_hsa_queue {
	uint32_t type, features;
	void *base_address;
	gp_hsa_signal doorbell;
	uint32_t size, reserved;
	uint64_t id;
};

typedef void (*gp_hsa_writer)(const void *packets, uint64_t n);
typedef void (*gp_hsa_handler)(const void *packets, uint64_t n, uint64_t index, void *data,
			       gp_hsa_writer writer);
typedef void (*gp_hsa_error)(int status, struct gp_hsa_queue *queue, void *data);

typedef int gp_hsa_queue_create(gp_hsa_agent agent, uint32_t size, uint32_t type, gp_hsa_error error,
				void *data, uint32_t private_size, uint32_t group_size,
				struct gp_hsa_queue **ret);
typedef int gp_hsa_queue_destroy(struct gp_hsa_queue *queue);
typedef int gp_hsa_register(struct gp_hsa_queue *queue, gp_hsa_handler handler, void *data);
typedef uint64_t gp_hsa_queue_index(const struct gp_hsa_queue *queue);
typedef int gp_hsa_set_priority(struct gp_hsa_queue *queue, uint32_t priority);
typedef int gp_hsa_signal_create(int64_t value, uint32_t n, const gp_hsa_agent *consumers,
				 gp_hsa_signal *ret);
typedef int gp_hsa_signal_destroy(gp_hsa_signal signal);
typedef int64_t gp_hsa_signal_load(gp_hsa_signal signal);
typedef void gp_hsa_signal_store(gp_hsa_signal signal, int64_t value);
typedef int64_t gp_hsa_signal_wait(gp_hsa_signal signal, uint32_t condition, int64_t value, uint64_t timeout,
				   uint32_t state);

typedef int gp_hsa_copy(void *to, gp_hsa_agent to_agent, const void *from, gp_hsa_agent from_agent,
			size_t size, uint32_t n, const gp_hsa_signal *waits, gp_hsa_signal signal);
typedef int gp_hsa_copy_on(void *to, gp_hsa_agent to_agent, const void *from, gp_hsa_agent from_agent,
			   size_t size, uint32_t n, const gp_hsa_signal *waits, gp_hsa_signal signal,
			   uint32_t engine, _Bool is_forced);

#define GP_HSA_LT 2u      /* HSA_SIGNAL_CONDITION_LT */
#define GP_HSA_BLOCKED 0u /* HSA_WAIT_STATE_BLOCKED */

/* hsa_amd_queue_priority_t */
enum { GP_HSA_PRIORITY_LOW, GP_HSA_PRIORITY_NORMAL, GP_HSA_PRIORITY_HIGH };

struct gp_hsa_version {
	uint32_t major_id, minor_id, step_id, reserved;
};

struct gp_hsa_table {
	struct gp_hsa_version version;
	void *entry[];
};

struct gp_hsa_tables {
	struct gp_hsa_version version;
	struct gp_hsa_table *core, *amd;
};

/* The entries that a door uses: where they lie in the tables. */
struct gp_rocr_entries {
	gp_hsa_queue_create **queue_create, **intercept_create;
	gp_hsa_queue_destroy **queue_destroy;
	gp_hsa_queue_index **write_index;
	gp_hsa_register **intercept_register;
	gp_hsa_set_priority **set_priority;
	gp_hsa_signal_create **signal_create;
	gp_hsa_signal_destroy **signal_destroy;
	gp_hsa_signal_load **signal_load;
	gp_hsa_signal_store **signal_store;
	gp_hsa_signal_wait **signal_wait;
	gp_hsa_copy **copy;
	gp_hsa_copy_on **copy_on; /* NULL: this release does not have it */
	int is_strict;            /* whoever intercepts a queue may put into its ring what it has room for */
};

/* -ENOTSUP: these are not tables that we know; why says which they are. */
int gp_rocr_entries(struct gp_hsa_tables *tables, struct gp_rocr_entries *ret, char *why, size_t size);

#endif
