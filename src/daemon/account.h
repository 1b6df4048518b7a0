/* SPDX-License-Identifier: MIT */
/*
 * What each user costs gpreemptd, and how much that may be: places, queues, holds, requests,
 * bytes, lines in the log, debuggers, and time (all but its first descriptors have one turn together).
 * One user's limits are never used up by another.  A subuid counts as its owner, and so does
 * whatever runs in a user namespace of that user's making; a container that root made is a
 * user of its own, whoever it says that it is inside.
 */
#ifndef GP_DAEMON_ACCOUNT_H
#define GP_DAEMON_ACCOUNT_H

#include "base/list.h"
#include "base/map.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/process.h"

struct gp_limits {
	uint32_t peers;
	uint32_t processes; /* that are known by a handle */
	uint32_t queues;    /* that agents tell of */
	uint32_t holds;     /* those that outlive their connection too */
	uint32_t requests;  /* that wait for queues */
	uint32_t items;     /* of those requests */
	uint32_t debuggers;
	uint32_t followers; /* of events */
	uint32_t unread;    /* bytes kept for peers that do not read them */
};

extern const struct gp_limits gp_limits_of_root;

/* So many, so often again. */
struct gp_bucket {
	uint64_t last_ns;
	uint32_t used;
};

struct gp_account {
	struct gp_list all;
	uint64_t key;
	uint64_t id;    /* never used twice; owner of holds, and holder of those whose connection has ended */
	uint32_t users; /* of this struct */
	uint64_t idle_ns; /* since when it has none */
	const struct gp_limits *most;
	struct gp_limits now;
	struct gp_turns turns;
	struct gp_bucket lines, debugger_starts;
	uint64_t lines_left_out;
};

struct gp_accounts {
	struct gp_map by_key;
	struct gp_list all;
	struct gp_loop *loop;
	const char *root;               /* of /etc/subuid */
	const struct gp_limits *limits; /* of each but root; may change */
	uint64_t last_id;
};

#define GP_ACCOUNT_ROOT UINT64_MAX
#define GP_ACCOUNT_NAMESPACE (1ull << 32)      /* beside the number of its inode; a user's key is the uid */
#define GP_ACCOUNT_CLASS (1ull << 33)          /* beside a class */
#define GP_ACCOUNT_UNSEEN GP_ACCOUNT_NAMESPACE /* of whoever cannot be identified */

/* Whether the process is root as the daemon understands it: uid 0 here, with CAP_SYS_ADMIN. */
bool gp_identity_is_root(const struct gp_identity *id);
/* In our own user and pid namespaces, with our root folder: where a gid was given by our administrator. */
bool gp_identity_is_local(const struct gp_identity *id);
/*
 * Root here made its user namespace: nobody else chose what is mounted there, or its root folder.  Uid 0 in a
 * container that has our own is not root here, and what it makes is in a pid namespace of ours.
 */
bool gp_identity_is_made_by_root(const struct gp_identity *id);

void gp_accounts_init(struct gp_accounts *a, struct gp_loop *loop, const char *root,
		      const struct gp_limits *limits);
void gp_accounts_free(struct gp_accounts *a);
uint64_t gp_account_key(const struct gp_accounts *a, const struct gp_identity *id);
/* One more user of the struct, until gp_account_put(). -ENOMEM, -EMFILE */
int gp_account_get(struct gp_accounts *a, uint64_t key, struct gp_account **ret);
void gp_account_put(struct gp_accounts *a, struct gp_account *account);
/*
 * Forgets those that nobody has used for a minute: who comes back sooner finds the limits on
 * how often as they were left.  is_needed: more reasons to stay.
 */
void gp_accounts_tidy(struct gp_accounts *a, bool (*is_needed)(void *arg, const struct gp_account *account),
		      void *arg);
/* The one with the most peers, root's left out; NULL: there is none. */
struct gp_account *gp_account_largest(const struct gp_accounts *a);

/* "user 1000", "namespace 4026532201", "root" */
const char *gp_account_name(const struct gp_account *a, char *text, size_t size);
/* By its id: "somebody" if it is forgotten. */
const char *gp_accounts_name(const struct gp_accounts *a, uint64_t id, char *text, size_t size);

/* Takes one of burst, which come back at rate a second. false: none is left. */
bool gp_bucket_take(struct gp_bucket *b, uint32_t burst, uint32_t rate, uint64_t now_ns);

/*
 * A line in the log that one user caused; what is too much is counted and told later. NULL: nobody did.
 * about: gp_log_about().
 */
__attribute__((format(printf, 4, 5))) void gp_account_log(struct gp_account *a, uint64_t now_ns,
							  const struct gp_about *about, const char *fmt, ...);

#endif
