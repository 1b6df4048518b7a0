/* SPDX-License-Identifier: MIT */
/*
 * A process is a handle, never a number: numbers are used again.  The handle is a pidfd, or
 * where the kernel has none (before 5.3) the process's open directory in /proc, which goes
 * dead with it.
 */
#ifndef GP_DAEMON_PROCESS_H
#define GP_DAEMON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_process {
	int fd; /* -1: none */
	bool is_pidfd;
	bool is_exact; /* the kernel named the process, not we by its number */
	uint32_t pid;
};

#define GP_NO_PROCESS ((struct gp_process){ .fd = -1 })

/* Who a process is now. */
struct gp_identity {
	uint32_t uid;             /* UINT32_MAX: its user ids are not all the same */
	bool is_administrator;    /* CAP_SYS_ADMIN is in effect */
	bool is_member;           /* of the group that was named */
	uint64_t user_ns, pid_ns; /* 0: not to be seen */
	uint32_t user_ns_owner;   /* of the outermost one below ours; UINT32_MAX: it is ours, or unknown */
	uint64_t container; /* the outermost pid namespace below ours, if it is of our user namespace; or 0 */
	uint64_t mount_ns;  /* 0: not to be seen */
	uint64_t root[2];   /* its root folder: device and inode */
};

/* For tests of what older kernels have: from now on no handle is a pidfd. */
void gp_process_without_pidfds(void);

/* The group that identities are asked for; -1: none. */
void gp_process_name_group(int64_t group);

/* Whoever has the number now. -ESRCH */
int gp_process_open(uint32_t pid, struct gp_process *ret);
/*
 * Whoever connected the socket (SO_PEERPIDFD, 6.5).  Where the kernel cannot say, whoever has
 * the number now: to be believed once a message has come that was sent after this and bears
 * the number, while the handle lives.
 */
int gp_process_of_peer(int socket, uint32_t pid, struct gp_process *ret);
/* Of a descriptor that is a handle already. */
struct gp_process gp_process_of(int fd, uint32_t pid);
int gp_process_copy(const struct gp_process *p, struct gp_process *ret);
void gp_process_close(struct gp_process *p);

/* One that nobody has waited for yet is dead. Without a handle: false. */
bool gp_process_lives(const struct gp_process *p);
/* A file of its folder in /proc, with a zero byte behind it: how many bytes. -ESRCH: it is gone. */
int gp_process_read(const struct gp_process *p, const char *name, char *text, size_t size);
int gp_process_identify(const struct gp_process *p, struct gp_identity *ret);
const struct gp_identity *gp_process_self(void);

#endif
