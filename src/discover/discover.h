/* SPDX-License-Identifier: MIT */
/*
 * What a machine knows of its GPU queues, read from sysfs, debugfs, /proc and a
 * runtime's log, and joined.  Reads files under a root folder and nothing else, so
 * a recorded tree is as good as a machine.  Nothing here acts on a queue.
 */
#ifndef GP_DISCOVER_DISCOVER_H
#define GP_DISCOVER_DISCOVER_H

#include <gpreempt/gpreempt.h> /* enum gp_queue_kind */
#include <stddef.h>
#include <stdint.h>

/* Where a field came from. INFERRED: from the order of doorbells or of age, likely but not certain. */
enum gp_source {
	GP_SOURCE_UNKNOWN,
	GP_SOURCE_SYSFS,
	GP_SOURCE_MQDS,
	GP_SOURCE_HQDS,
	GP_SOURCE_RLS,
	GP_SOURCE_LOG,
	GP_SOURCE_PROC,
	GP_SOURCE_AGENT,
	GP_SOURCE_INFERRED,
	GP_SOURCE_COUNT
};

/* The fields of a queue that may be unknown. */
enum gp_field {
	GP_FIELD_ID, /* KFD's queue id, unique within its process */
	GP_FIELD_GPU,
	GP_FIELD_KIND,
	GP_FIELD_RING, /* the ring's address: what joins all sources */
	GP_FIELD_RING_SIZE,
	GP_FIELD_PRIORITY,
	GP_FIELD_ACTIVE, /* runnable: in the run list, or active by its MQD */
	GP_FIELD_MAPPED, /* on a hardware slot at that instant (hqds) */
	GP_FIELD_DOORBELL,
	GP_FIELD_RPTR, /* addresses of the pointers */
	GP_FIELD_WPTR,
	GP_FIELD_RUNTIME_ID, /* HIP's own counter, from a log */
	GP_FIELD_COUNT
};

struct gp_found_queue {
	uint32_t pid; /* host's; 0: only a log knows it, and whose it is cannot be told */
	uint32_t queue_id, gpu_id, kind, priority, active, mapped, doorbell, runtime_id;
	uint64_t ring, ring_size, rptr_address, wptr_address, mqd_address;
	uint8_t from[GP_FIELD_COUNT]; /* enum gp_source of each field; UNKNOWN: the value means nothing */
};

struct gp_found_client {
	uint32_t pid, inner_pid;  /* inner: in its own pid namespace; equal outside containers */
	uint32_t uid, pasid;      /* UINT32_MAX: unknown */
	char name[32];            /* command name */
	char cgroup[256];         /* path, as far as root made it, down to the container; or empty */
	char container[80];       /* docker, podman, crio or containerd id; empty: none */
	char pod[80];             /* Kubernetes pod uid; empty: none */
	char container_name[336]; /* what people call it, of one in a pod "POD/NAME" (at most 253 and 63), if
				     that can be read; whole, or empty */
	char kube_namespace[64];  /* Kubernetes', of that pod; whole, or empty */
};

enum gp_vendor { GP_VENDOR_AMD, GP_VENDOR_NVIDIA };

struct gp_found_device {
	uint32_t vendor;       /* enum gp_vendor */
	uint32_t node, gpu_id; /* topology node, or NVIDIA's minor number; 0 gpu_id never appears */
	uint32_t compute_units, queue_slots, xccs, gfx_target; /* 0: unknown */
	uint32_t render_minor, location, domain;
	uint32_t sdma_engines;
	char name[32];
	uint32_t instances; /* of MIG; 0: it is one GPU */
	char uuid[48];      /* NVIDIA's, as nvidia-smi has it; empty: unknown */
};

/* What one source gave. */
struct gp_found_source {
	int32_t status;          /* 0, or -errno: -ENOENT, -EACCES, ...; -ENODATA: was not asked for */
	uint32_t lines, skipped; /* skipped: lines nobody understood */
	uint32_t truncated;      /* 1: ended in the middle of something */
	uint32_t queues, others; /* a log's: of the processes asked for, and of others */
	uint32_t other_pid;      /* one of these, as the log counts */
};

struct gp_found {
	struct gp_found_device *devices;
	struct gp_found_client *clients; /* by pid */
	struct gp_found_queue *queues;   /* by pid, gpu, id */
	size_t ndevices, nclients, nqueues;
	struct gp_found_source sources[GP_SOURCE_COUNT];
};

struct gp_discover_opts {
	const char *root; /* NULL: "/" */
	const char *log;  /* an AMD_LOG_LEVEL log, a plain path (not under root), or NULL */
	uint32_t pid;     /* of this process alone; 0: all */
	uint32_t flags;   /* GP_DISCOVER_* */
};

/* Reads registers of every slot: slow, and disturbs. Off unless asked for. */
#define GP_DISCOVER_HQDS (1u << 0)

/*
 * A source that is missing or forbidden is no error: sources[] says so.  -ENOMEM; of a log that was named and
 * cannot be read, why; -EINVAL for an unknown flag.  opts may be NULL.
 */
int gp_discover(const struct gp_discover_opts *opts, struct gp_found **ret);
void gp_found_free(struct gp_found *found); /* NULL is fine */

/* One queue, as sysfs shows it now. -ENOENT: it does not. */
int gp_discover_queue(const char *root, uint32_t pid, uint32_t queue_id, struct gp_found_queue *ret);

/* First queue of a process with this ring address or id; NULL if there is none. */
const struct gp_found_queue *gp_found_by_ring(const struct gp_found *found, uint32_t pid, uint64_t ring);
const struct gp_found_queue *gp_found_by_id(const struct gp_found *found, uint32_t pid, uint32_t queue_id);
const struct gp_found_client *gp_found_client(const struct gp_found *found, uint32_t pid);

/* Of NVIDIA's driver: "580.159.04". -ENOENT: it is not loaded. */
int gp_nvidia_version(const char *root, char *ret, size_t size);

/* NVIDIA's MPS documentation: where its control program listens, unless CUDA_MPS_PIPE_DIRECTORY says
 * otherwise. */
#define GP_MPS_FOLDER "/tmp/nvidia-mps"

/*
 * What a process, by the host's pid, is to NVIDIA's Multi-Process Service: "server", "client", or "":
 * neither, or its environment cannot be read.
 */
const char *gp_mps_role(uint32_t pid);
uint32_t gp_mps_server(void); /* the pid of one that runs here; 0: none does */

const char *gp_source_name(uint32_t source); /* "sysfs", "debugfs mqds", ... "unknown" */
const char *gp_kind_name(uint32_t kind);

/* When a process started, in clock ticks after boot, from root's /proc; 0: unknown, or there is none. */
uint64_t gp_proc_start(const char *root, uint32_t pid);
/* Where a process has a pid: nowhere, in a pid namespace between ours and its own, or in its own. */
enum gp_pid_where { GP_PID_NOWHERE, GP_PID_BETWEEN, GP_PID_OWN };
/* From root's /proc (NULL: the machine's). */
enum gp_pid_where gp_proc_pid_where(const char *root, uint32_t pid, uint32_t inner);
/* Whether the pids we see are the host's; where there are no pid namespaces, or no /proc, as far as known. */
int gp_sees_host_pids(void);

/* How a word names a container, the better the greater. */
enum gp_called { GP_CALLED_OTHERWISE, GP_CALLED_BY_ID, GP_CALLED_IN_PART, GP_CALLED_SO };

/* By its name, either part of "POD/NAME", or the first digits of its id. An id may be known with fewer digits
 * than the word has. */
enum gp_called gp_container_called(const char *name, const char *id, const char *word);

/*
 * Host's pid of a pid inside a container, of those that a word names the best one. -ENOENT: no such container
 * or pid; -ENOTUNIQ: several.
 */
int gp_discover_container_pid(const char *root, const char *container, uint32_t inner_pid, uint32_t *ret_pid);
/* What /proc knows of processes, which have their pids: who they are, and their containers. */
void gp_discover_processes(const char *root, struct gp_found_client *clients, size_t n);

#endif
