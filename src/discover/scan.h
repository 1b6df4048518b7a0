/* SPDX-License-Identifier: MIT */
/*
 * What each source said, before the join.  A parser takes lines and adds to its list; it never fails on what
 * it reads, only on memory.
 */
#ifndef GP_DISCOVER_SCAN_H
#define GP_DISCOVER_SCAN_H

#include "discover/discover.h"
#include "discover/text.h"

#define GP_NO_ENGINE UINT32_MAX
#define GP_NO_PCI UINT64_MAX

/* A queue as one source saw it. Nothing here points into a file. */
struct gp_seen {
	struct gp_found_queue q;
	uint64_t pci;    /* mqds: domain << 16 | location, where text named the device so */
	uint64_t swq;    /* log: the hsa_queue_t's address */
	uint32_t order;  /* place in its file. mqds: KFD puts the newest first */
	uint32_t engine; /* mqds: of an SDMA queue */
	uint8_t gone;    /* log: deleted. join: already part of another */
};

/* MAP_QUEUES of a run list, or a hardware slot in use: which queue is there, in the words of that source. */
struct gp_mapping {
	uint64_t mqd, ring, wptr;
	uint32_t gpu_id, doorbell;
};

/* Items of one kind in a row. */
struct gp_array {
	void *at;
	size_t count, room;
};

/* Room for one more, zeroed: a pointer that holds until the next call, or NULL. */
void *gp_array_add(struct gp_array *array, size_t item);

struct gp_scan {
	int root;                                 /* descriptor of the root folder, or -errno */
	uint32_t pid;                             /* of this process alone; 0: all */
	uint32_t log_pid;                         /* the pid it has where its log was written; 0: the same */
	uint32_t no_run_lists;                    /* amdgpu.sched_policy=2: rls says nothing */
	struct gp_array devices, clients;         /* struct gp_found_device, gp_found_client */
	struct gp_array sysfs, mqds, log;         /* struct gp_seen */
	struct gp_array run_list, slots;          /* struct gp_mapping */
	struct gp_array run_list_gpus, slot_gpus; /* uint32_t: the devices that file spoke of */
	struct gp_found_source sources[GP_SOURCE_COUNT];
};

/* Parsers of one file each. */
int gp_mqds_parse(struct gp_lines *in, struct gp_scan *scan);
int gp_rls_parse(struct gp_lines *in, struct gp_scan *scan);
int gp_hqds_parse(struct gp_lines *in, struct gp_scan *scan);
int gp_log_parse(struct gp_lines *in, struct gp_scan *scan);

/*
 * cgroup, container and pod from the text of /proc/<pid>/cgroup, as far as root made what it names: the
 * hierarchies under the root folder tell.
 */
void gp_cgroup_parse(int root, const char *text, size_t len, struct gp_found_client *client);
/* Container and pod from a path that is believed, which then ends with the container. */
void gp_cgroup_names(struct gp_span *path, struct gp_found_client *client);
/*
 * Descriptor of /proc/<pid>, or -errno.  Of one process, whatever becomes of its number: when it has ended,
 * its files cannot be opened any more.
 */
int gp_proc_open(int root, uint32_t pid);
/* 1: the rest of the line of this key in the text of /proc/<pid>/status. */
int gp_status_line(const char *text, size_t len, const char *key, struct gp_span *ret);
#define GP_PID_LEVELS 32 /* of pid namespaces: the kernel's limit */
/* All numbers of NSpid in the text of /proc/<pid>/status, outermost first, at most n; how many. */
uint32_t gp_status_pids(const char *text, size_t len, uint32_t *pids, uint32_t n);
/* Where a pid stands among all pids of the process with this descriptor of /proc/<pid>. */
enum gp_pid_where gp_process_pid_where(int process, uint32_t inner);

#define GP_CONTAINER_DIGITS 64 /* of a container's id */

int gp_is_container_id(const char *at); /* of so many characters, all of them */
/* The string of a key of a JSON object, or of one in it that has this key (NULL: of itself). 1: there is one.
 */
int gp_json_find(const char *text, size_t len, const char *section, const char *key, struct gp_span *ret);
/* The "Name" of docker's config.v2.json, without its slash. 1: there is one. */
int gp_docker_name(const char *text, size_t len, struct gp_span *ret_name);
/* A container in podman's containers.json, by id or, if that is NULL, by name. 1: found; ret is the other. */
int gp_podman_find(const char *text, size_t len, const char *id, const char *name, struct gp_span *ret);
/* A container's name by the annotations in the config.json of its bundle: "POD/NAME" and the namespace, or
 * "NAME". 1: it is filled in. */
int gp_annotated_name(const char *text, size_t len, struct gp_found_client *client);
/* Fills in the name of a client's container, if a file under root has it. */
void gp_container_name(int root, struct gp_found_client *client);
/* The other way, in podman's storage, which may have more than one name for it. 1: ret_id has it. */
int gp_container_id(int root, const char *name, char *ret_id);
/* Container and its name by the arguments of its conmon. 1: there they are. */
int gp_conmon_names(const char *text, size_t len, struct gp_found_client *client);
/* The same of whoever monitors it among the process parent and those above. */
void gp_conmon_container(int root, uint32_t parent, struct gp_found_client *client);
/* What /proc knows of a client that has its pid. before: another, perhaps of the same container, or NULL. */
void gp_proc_client(int root, struct gp_found_client *client, const struct gp_found_client *before);

int gp_sysfs_read(struct gp_scan *scan);                                /* devices, processes, queues */
int gp_nvidia_read(struct gp_scan *scan);                               /* NVIDIA's devices */
void gp_proc_read(struct gp_scan *scan);                                /* what /proc knows of each client */
int gp_scan_client(struct gp_scan *scan, uint32_t pid, uint32_t pasid); /* notes that the kernel knows it */
const struct gp_found_device *gp_scan_device(const struct gp_scan *scan, uint32_t gpu_id);

/* Makes one list of all. ret_unmatched: sysfs and mqds speak of different numbers of queues of a process. */
int gp_join(struct gp_scan *scan, struct gp_array *ret, int *ret_unmatched);

/* The order of gp_found.queues: pid, device, id, ring; what is unknown comes last. */
int gp_queue_order(const struct gp_found_queue *x, const struct gp_found_queue *y);

/* Sets a field and who said it. */
#define gp_set(queue, member, field, value, source) \
	do { \
		(queue)->member = (value); \
		(queue)->from[GP_FIELD_##field] = (source); \
	} while (0)

#endif
