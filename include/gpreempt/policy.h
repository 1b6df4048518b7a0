/* SPDX-License-Identifier: MIT */
/*
 * What a scheduling policy is: it keeps the run set of one device, the clients
 * that may use it now.
 *
 * The core tells the policy which clients have work (enqueue) and which have
 * none (dequeue); between the two the client is the policy's to run or to stop.
 * decide() edits the run set by gp_policy_run() and gp_policy_stop(); what it
 * does not touch stays as it was.  The time is always an argument.
 *
 * The core believes a policy about nothing.  Touching a client it does not own,
 * running more offline clients than allowed, leaving online clients out without
 * GP_POLICY_STOPS_ONLINE, leaving work waiting with nobody running, or asking to
 * be called again without end: the policy is ejected, the reason is kept, and
 * fifo goes on with the same clients.
 */
#ifndef GPREEMPT_POLICY_H
#define GPREEMPT_POLICY_H

#include <gpreempt/gpreempt.h>

#define GP_POLICY_ABI 1
#define GP_NEVER UINT64_MAX
#define GP_UNLIMITED UINT32_MAX

/* It may keep online clients out of the run set too: they get what stops a client at a kernel's boundary. */
#define GP_POLICY_STOPS_ONLINE (1u << 0)
/* It wants to know when offline clients have no work; else they count as having some. */
#define GP_POLICY_NEEDS_IDLE (1u << 1)

struct gp_policy; /* one policy on one device; the core's */

/* A client on this device, as the policy sees it. Only priv is the policy's to write. */
struct gp_policy_client {
	uint64_t id;
	uint64_t user;        /* whose it is: a user's clients share what is the user's */
	uint64_t slo_ns;      /* 0: none */
	uint64_t deadline_ns; /* oldest open request's, GP_NEVER if there is none */
	uint64_t service_ns;  /* measured length of a request, 0 while unknown */
	uint64_t since_ns;    /* when it was last put into or taken out of the run set */
	uint64_t run_ns;      /* time spent in the run set, up to since_ns */
	uint32_t client_class;
	uint32_t weight;  /* 1 and up; 100 is normal */
	uint32_t running; /* in the run set */
	uint32_t reserved;
	void *priv; /* priv_size bytes, zero when the client comes */
};

/* What the device asks of the policy now. */
struct gp_policy_limits {
	uint32_t max_offline; /* offline clients in the run set: 1 where yield slices would thrash */
	uint32_t yields;      /* 1: the device gives way to online work by itself */
	uint64_t quantum_ns;  /* how long a turn should be when clients take turns */
	uint64_t preempt_ns;  /* measured time from a stop to the last wave off, 0 while unknown */
	uint32_t parked;      /* 1: offline stands still, whoever is in the run set: a turn costs nothing */
	uint32_t reserved;
};

struct gp_policy_ops {
	size_t size;
	uint32_t abi;
	uint32_t flags;    /* GP_POLICY_*; what is unknown is refused */
	const char *name;  /* the only mandatory field */
	size_t state_size; /* of gp_policy_state() */
	size_t priv_size;  /* of each client's priv */

	int (*init)(struct gp_policy *p);
	void (*exit)(struct gp_policy *p);
	void (*enqueue)(struct gp_policy *p, struct gp_policy_client *c, uint64_t now_ns);
	void (*dequeue)(struct gp_policy *p, struct gp_policy_client *c, uint64_t now_ns);
	/* Its deadline changed. One whose class, weight or SLO changes leaves and comes back. */
	void (*changed)(struct gp_policy *p, struct gp_policy_client *c, uint64_t now_ns);
	/* Returns when to be called again if nothing happens: GP_NEVER is fine. */
	uint64_t (*decide)(struct gp_policy *p, uint64_t now_ns);
};

/*
 * For policies to call. Ids, not pointers: an id that is gone is an error, not a crash.
 * The programs that load policies export these; libgpreempt does not have them.
 */
GP_API void *gp_policy_state(struct gp_policy *p);
GP_API const struct gp_policy_limits *gp_policy_limits(const struct gp_policy *p);
GP_API int gp_policy_run(struct gp_policy *p, uint64_t client);
GP_API int gp_policy_stop(struct gp_policy *p, uint64_t client);

/* What a shared object defines to be a policy, for gpreempt sim --policy ./mine.so. */
GP_API extern const struct gp_policy_ops gp_policy;

#endif
