/* SPDX-License-Identifier: MIT */
/*
 * gpreempt: latency-critical GPU work takes the GPU from best-effort work,
 * loses nothing, and gives it back.
 *
 * Every call returns 0 or a count, else a negative errno; errno itself is
 * neither read nor set.  Results go through the last parameters, ret_*, and are
 * written only on success.  Structs that may grow start with their own size:
 * set it to sizeof before the call.  Zero means default everywhere.
 *
 * One context per thread, but for hints: gp_hint_begin().  The library starts no
 * thread, installs no handler, prints nothing and never ends the process.  After
 * fork() the child may only close.
 */
#ifndef GPREEMPT_GPREEMPT_H
#define GPREEMPT_GPREEMPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GP_VERSION_MAJOR 0
#define GP_VERSION_MINOR 1
#define GP_MAKE_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))

#ifndef GP_API
#define GP_API __attribute__((visibility("default")))
#endif

/* What a client is. Unknown is treated as offline: nobody is online by accident. */
enum gp_class { GP_CLASS_UNKNOWN, GP_CLASS_OFFLINE, GP_CLASS_ONLINE };

/* What a queue should be. BACKGROUND: it runs, and something below us takes the
 * GPU away from it for online work, with no call per request. */
enum gp_want_kind { GP_RUN, GP_BACKGROUND, GP_STOP };

enum gp_queue_state { GP_QUEUE_RUNNING, GP_QUEUE_SUSPENDING, GP_QUEUE_SUSPENDED, GP_QUEUE_RESUMING };

/* Whether a queue has work, as far as anybody can tell. */
enum gp_activity_kind { GP_ACTIVITY_UNKNOWN, GP_ACTIVITY_IDLE, GP_ACTIVITY_BUSY };

/* What a device can do. */
#define GP_CAP_THROTTLE (1u << 0)      /* Lv1: bound the commands in flight */
#define GP_CAP_GATE (1u << 1)          /* Lv2: hold a queue at a kernel's boundary */
#define GP_CAP_INTERRUPT (1u << 2)     /* Lv3: stop running waves and save them */
#define GP_CAP_BACKGROUND (1u << 3)    /* Lv3, yield: GP_BACKGROUND works */
#define GP_CAP_BATCH (1u << 4)         /* any number of queues in one device cycle */
#define GP_CAP_SELECTIVE (1u << 5)     /* a stop leaves the other queues alone */
#define GP_CAP_CROSS_PROCESS (1u << 6) /* acts on other processes' queues */
#define GP_CAP_RESERVE (1u << 7)       /* limits the active offline queues */
#define GP_CAP_ACTIVITY (1u << 8)      /* busy and idle can be told apart */
#define GP_CAP_TAKES_TURNS (1u << 9)   /* two background clients would thrash: one at a time */

#define GP_NAME_LEN 32
#define GP_ALL_DEVICES UINT32_MAX /* in the place of a device's number, where a call says so */

enum gp_queue_kind { GP_KIND_UNKNOWN, GP_KIND_COMPUTE, GP_KIND_SDMA, GP_KIND_XGMI };

/* Fields of struct gp_queue_info that a source may not tell. */
#define GP_KNOWN_QUEUE_ID (1u << 0)
#define GP_KNOWN_RING (1u << 1)
#define GP_KNOWN_PRIORITY (1u << 2)
#define GP_KNOWN_ACTIVE (1u << 3)

/* What a process may do. */
#define GP_RIGHT_OTHERS \
	(1u << 0) /* act on others' queues, choose policies, reserve; be online by its own word */
/* What gp_ctx_rights() tells besides: why it may do no more, or need not. */
#define GP_GIVEN_ONLINE (1u << 1)  /* it came by the socket of that class: that is what it is */
#define GP_GIVEN_OFFLINE (1u << 2) /* the same */
#define GP_IN_CONTAINER (1u << 3)  /* its namespaces or root folder are not gpreemptd's */
#define GP_OWN_DAEMON (1u << 4)    /* gpreemptd is this user's, or another's who is not root */

struct gp_ctx; /* one connection to a machine's GPUs */

struct gp_open_opts {
	size_t size;
	const char *backend; /* "kfd": this machine's GPUs; "sim": a simulated machine; "auto", the default:
				see below */
	const char *device;  /* sim: "mi308x" (the default), "mi300x", "h200" */
	uint64_t flags;      /* none yet: must be 0 */
	const char *socket;  /* kfd: gpreemptd's; default GPREEMPT_SOCKET, else where it usually is */
	char *errmsg;        /* NULL, or where a sentence goes if the call fails */
	size_t errmsg_size;
};

struct gp_device_info {
	size_t size;
	char name[GP_NAME_LEN];
	char backend[GP_NAME_LEN];
	char policy[GP_NAME_LEN]; /* what schedules it, empty if nobody does */
	uint32_t device;          /* the number every other call takes */
	uint32_t caps;            /* GP_CAP_* */
	uint32_t compute_units;
	uint32_t queue_slots;    /* hardware slots for compute queues; 0: none are known */
	uint32_t online_percent; /* of them, by gp_device_reserve(); both 0: nothing is reserved */
	uint32_t offline_percent;
	uint32_t gpu_id;    /* the driver's id of it; 0: it has none */
	char pci[20];       /* "0000:c1:00.0"; empty: unknown, or it is on no bus */
	uint32_t instances; /* that NVIDIA's MIG has made of it; 0: it is one GPU */
	uint32_t reserved;  /* 0 */
};

struct gp_queue_info {
	size_t size;
	uint64_t queue;  /* handle: opaque, never reused */
	uint64_t client; /* the process it belongs to, as a handle */
	char client_name[GP_NAME_LEN];
	uint32_t device;
	uint32_t priority;     /* 0 to 15 */
	uint32_t client_class; /* enum gp_class */
	uint32_t state;        /* enum gp_queue_state */
	uint32_t activity;     /* enum gp_activity_kind */
	uint32_t held;         /* 1: suspended by gp_queue_suspend(), not by the scheduler */
	uint64_t ring;         /* the ring's address in its process */
	uint32_t pid;          /* as the host counts */
	uint32_t queue_id;     /* the driver's, unique within its process alone */
	uint32_t gpu_id;       /* the driver's id of the device */
	uint32_t kind;         /* enum gp_queue_kind */
	uint32_t active;       /* 1: the driver may run it */
	uint32_t known;        /* GP_KNOWN_*: which fields mean something */
	char way[GP_NAME_LEN]; /* how it would be stopped; empty: nobody here can */
	char rule[96];         /* what gave it its class */
	char place[96];        /* container or pod, empty outside */
	char from[192];        /* where each field came from: "queue_id=sysfs ring=mqds ..." */
	uint64_t local_pid; /* pid as whoever asks counts; 0: it has none in that pid namespace, or unknown */
};

/* Of a client's queues on a device: no work; at work; stopped for others' work; stopped by
 * gp_queue_suspend(). */
enum gp_client_state { GP_CLIENT_IDLE, GP_CLIENT_RUNNING, GP_CLIENT_WAITING, GP_CLIENT_HELD };

struct gp_client_info {
	size_t size;
	uint64_t client; /* handle: opaque, never reused */
	char name[GP_NAME_LEN];
	uint32_t pid; /* as the host counts */
	uint32_t uid;
	uint32_t device;       /* GP_ALL_DEVICES: an unknown one, or none yet */
	uint32_t client_class; /* enum gp_class */
	uint32_t weight;
	uint32_t state;  /* enum gp_client_state */
	uint64_t slo_ns; /* 0: none */
	uint32_t queues;
	uint32_t stopped;        /* of them */
	uint32_t hints;          /* that are open */
	uint32_t share_permille; /* of the device's time, in the last 10 s */
	uint64_t hinted;         /* how often it became active by a hint, */
	uint64_t sampled;        /* and by what its queues showed */
	char rule[96];           /* what gave it its class */
	char place[96];          /* container or pod, empty outside */
	uint32_t resuming;       /* of those that are stopped: they are to run, and do not yet */
	uint32_t reserved;       /* 0 */
};

/* What becomes of the running waves: saved; given until timeout_ns to end, and then saved; killed, which is
 * refused. */
enum gp_preempt_type { GP_PREEMPT_SAVE, GP_PREEMPT_DRAIN, GP_PREEMPT_RESET };

struct gp_suspend_opts {
	size_t size;
	uint64_t lease_ns;   /* the suspension undoes itself after this; 0: when the context closes */
	uint64_t flags;      /* GP_SUSPEND_* */
	uint64_t timeout_ns; /* how long a drain, or a stop by the private way, may take; 0: a second */
	uint32_t type;       /* enum gp_preempt_type */
	uint32_t reserved;   /* must be 0 */
	const char *way;     /* "auto" (the default), "session", "update", "dbg", "private": libgpreempt(7) */
};

#define GP_SUSPEND_NEW_QUEUES (1ull << 0) /* also what their clients create while it lasts */
#define GP_SUSPEND_STRICT (1ull << 1) /* of a drain: what has not ended in time runs on, and is not saved */

/* How long things took. at_most: how many of them took at most 10 us, 20 us, 50 us, 100 us and so on to 10 s.
 */
#define GP_LATENCY_BOUNDS 19
struct gp_latencies {
	uint64_t count;
	uint64_t sum_ns;
	uint64_t at_most[GP_LATENCY_BOUNDS];
};

/* What failed: a queue was to be stopped, given back, or made to yield (or not to any more). */
enum gp_attempt { GP_ATTEMPT_SUSPEND, GP_ATTEMPT_RESUME, GP_ATTEMPT_YIELD };
#define GP_ATTEMPTS 3
/* And why: no answer in time; its process or agent went; it may not or cannot be; there is no room for it
 * now; it was called off; any other error of the driver. */
enum gp_failure {
	GP_FAILURE_TIMEOUT,
	GP_FAILURE_GONE,
	GP_FAILURE_REFUSED,
	GP_FAILURE_BUSY,
	GP_FAILURE_CANCELED,
	GP_FAILURE_DRIVER,
};
#define GP_FAILURES 6

/* Counted since gpreemptd was started, or the simulated machine. */
struct gp_stats {
	size_t size;
	uint64_t preemptions;    /* times offline work was taken off for online work */
	uint64_t cycles;         /* unmap + fence + remap, or context switches asked for */
	uint64_t suspends;       /* queues stopped */
	uint64_t resumes;        /* queues given back */
	uint64_t failures;       /* of either */
	uint64_t suspend_p50_ns; /* request to last wave off */
	uint64_t suspend_p99_ns;
	uint64_t suspend_max_ns;
	uint64_t backoff_until_ns; /* 0, or when a stop that waits is allowed (clock of the backend) */
	uint64_t policy_ejected;   /* policies ejected on this device */
	char reason[128];          /* why stops are put off or failed, or a policy was ejected */
	uint64_t limited;          /* stops that were put off */
	uint64_t resume_p50_ns;    /* request to running again */
	uint64_t resume_p99_ns;
	uint64_t resume_max_ns;
	uint64_t hints;   /* times a client became active by a hint, */
	uint64_t samples; /* and by what its queues showed */
	uint32_t device;
	uint32_t reserved; /* 0 */
	char policy[GP_NAME_LEN];
	char ejection[128];      /* why the policy chosen last was ejected */
	uint32_t yielding;       /* queues that yield to online work by themselves, now; and */
	uint32_t stopped;        /* those that stand still, for others' work or by gp_queue_suspend() */
	uint64_t slices;         /* times a queue was made to yield or not to, */
	uint64_t slice_failures; /* and times that failed, which failures has too */
	uint32_t has_details;    /* 1: what follows means something; 0: this gpreemptd is older than that */
	uint32_t backing_off;    /* clients whose stops wait now, because one has failed or was refused */
	struct gp_latencies suspend; /* what the percentiles above are of */
	struct gp_latencies resume;
	struct gp_latencies online; /* requests, from the begin of their hint to its end */
	uint64_t hints_expired;     /* requests whose hint was not ended in time */
	uint64_t slo_requests;      /* requests of clients with a latency objective that ended or expired, */
	uint64_t slo_met;           /* and those of them that ended within it */
	uint64_t starved;           /* times a client had waited too long, and got a slice */
	uint64_t offline_run_ns;    /* time in which an offline client had work and was let run, */
	uint64_t offline_wait_ns;   /* and in which one had work and was made to wait; */
	uint64_t online_run_ns;     /* the same of online clients */
	uint64_t online_wait_ns;
	uint64_t failed[GP_ATTEMPTS][GP_FAILURES]; /* failures, by what and why */
	uint64_t reason_age_ns; /* how long ago reason was so; 0: it is now, or this gpreemptd is older */
};

/* A request that is on its way, or done. NULL in its place is one with zeros in all fields. */
struct gp_hint {
	size_t size;
	uint64_t client;    /* 0: this process */
	uint64_t number;    /* pairs begin and end; 0: counted, the oldest ends first */
	uint64_t expiry_ns; /* of a begin that is never ended; 0: the daemon's default */
	uint32_t flags;     /* GP_HINT_* */
	uint32_t device;    /* with GP_HINT_DEVICE; else all of them */
};

#define GP_HINT_DEVICE (1u << 0) /* device counts */
#define GP_HINT_ANSWER \
	(1u << 1) /* wait for what gpreemptd says to it: like any other call, not like a hint */

enum gp_event_kind {
	GP_EVENT_SUSPEND,
	GP_EVENT_RESUME,
	GP_EVENT_FAILED,  /* a stop or a resume, or a program cannot yield */
	GP_EVENT_BACKOFF, /* stops are put off */
	GP_EVENT_EJECTED, /* a policy */
	GP_EVENT_LEASE,   /* one ended, and with it a suspension */
	GP_EVENT_CLIENT,  /* one came */
	GP_EVENT_GONE,    /* and went */
	GP_EVENT_STARVED, /* one had waited too long, and got its slice */
	GP_EVENT_LOST,    /* events before this one were not kept */
	GP_EVENT_POLICY,  /* somebody chose another for a device */
	GP_EVENT_CLASS,   /* root changed a client's */
};

struct gp_event {
	size_t size;
	uint64_t number;
	uint64_t at_ns;      /* CLOCK_REALTIME */
	uint32_t kind;       /* enum gp_event_kind, or one of a later release */
	uint32_t device;     /* GP_ALL_DEVICES: of none */
	uint64_t client;     /* 0: of none */
	uint64_t queue;      /* 0: of none */
	uint64_t latency_ns; /* from the call to its end */
	uint32_t pid;
	int32_t status; /* 0 or -errno */
	char client_name[GP_NAME_LEN];
	char way[GP_NAME_LEN];
	char text[192];
	uint32_t tried;    /* of FAILED: 1 + enum gp_attempt; else 0, and of an older gpreemptd */
	uint32_t reserved; /* 0 */
};

struct gp_event_opts {
	size_t size;
	uint32_t kinds; /* bits, 1 << enum gp_event_kind; 0: all */
	uint32_t flags; /* GP_EVENT_* */
};

#define GP_EVENT_FOLLOW (1u << 0) /* also those to come */
#define GP_EVENT_NEW (1u << 1)    /* none of those that are kept; -ENOTSUP: gpreemptd is too old for that */

/*
 * What whoever starts jobs says of one: none of its processes is more than this.  Of it are the process pid
 * and all that descend from it, or those in the cgroup, if there is one.  It lasts as long as pid.
 */
struct gp_job {
	size_t size;
	uint32_t pid;
	uint32_t client_class;   /* enum gp_class; a process may say that it is less */
	uint64_t start;          /* of pid: field 22 of its stat in /proc; 0: whoever has the number */
	uint64_t slo_ns;         /* where they say none, and none of theirs is shorter; 0: theirs counts */
	uint32_t weight;         /* where they say none, and none of theirs is more; 0: theirs counts */
	uint32_t floor_permille; /* less of a device's time than this, for long, is too little; 0: never */
	uint64_t patience_ns;    /* how long that is */
	const char *name;        /* what lists call it, up to 63 bytes */
	const char *cgroup;      /* "/slurm/uid_1000/job_7/step_0", up to 191 bytes; NULL: descendants */
};

/* Counted since it was declared, over all its processes and devices. */
struct gp_job_info {
	size_t size;
	char name[64];
	uint32_t pid;
	uint32_t client_class; /* enum gp_class */
	uint32_t weight;       /* 0: its processes' own */
	uint32_t clients;      /* of its processes, now */
	uint64_t slo_ns;       /* 0: its processes' own */
	uint64_t ran_ns;       /* with work, and not told to wait */
	uint64_t waits;        /* times one was told to wait for others' work, */
	uint64_t waited_ns;    /* and how long that was */
	uint64_t requests;     /* hints that were ended, */
	uint64_t within_slo;   /* of those with an objective, in time: the job's, if it has one, */
	uint64_t with_slo;     /* and all of those */
	uint64_t p50_ns;       /* what they took, from begin to end */
	uint64_t p99_ns;
	uint64_t max_ns;
	uint64_t starving_ns; /* how long it has had less than its floor; 0: it has not */
	uint32_t is_starved;  /* 1: for longer than its patience */
	uint32_t is_partial;  /* 1: gpreemptd was started again since: what was before is not counted */
};

/*
 * Levels: how a queue of this process can be held while others run.  THROTTLE: so many launches are in
 * flight, and no more; GATE: it is held at the next kernel's boundary; INTERRUPT: running waves are saved.
 */
enum gp_level { GP_LEVEL_NONE, GP_LEVEL_THROTTLE, GP_LEVEL_GATE, GP_LEVEL_INTERRUPT };

struct gp_stream; /* a queue of this process, with a priority */

struct gp_stream_opts {
	size_t size;
	uint32_t priority; /* 0 to 15; from 10 on it is online, below that offline */
	uint32_t level;    /* enum gp_level; NONE: the highest there is */
	uint64_t flags;    /* GP_STREAM_* */
};

/* Held by the calls below alone, not for online streams of this process, and no other is held for it. */
#define GP_STREAM_MANUAL (1ull << 0)
#define GP_STREAM_LAST (1ull << 1) /* stream is NULL: the queue that this thread launched to last */

struct gp_stream_info {
	size_t size;
	uint32_t levels;        /* that it has: bits, 1 << enum gp_level */
	uint32_t level;         /* that it is held at */
	uint32_t priority;      /* as it was opened */
	uint32_t held;          /* 1: by whomever */
	uint64_t begun;         /* launches that were counted, */
	uint64_t ended;         /* and of them those that have ended */
	uint64_t length_ns;     /* of a launch, as measured at THROTTLE; 0: unknown */
	uint32_t in_flight;     /* that THROTTLE allows */
	uint32_t reserved;      /* 0 */
	uint64_t queue;         /* its handle in gp_queue_list(); 0: without INTERRUPT */
	char door[GP_NAME_LEN]; /* the runtime that it is held in: "rocr", "cuda", "opencl"; empty: none */
};

GP_API uint32_t gp_version(void);
GP_API const char *gp_strerror(int r);

/* auto: what GPREEMPT_BACKEND says, else sim if a device is named, else kfd. Nobody gets sim by accident. */
GP_API int gp_ctx_open(const struct gp_open_opts *opts, struct gp_ctx **ret_ctx);
GP_API struct gp_ctx *gp_ctx_close(struct gp_ctx *ctx);
GP_API const char *gp_ctx_errmsg(const struct gp_ctx *ctx);
/* What there is to say of the open, suspend, resume or hints before it though they went well; or empty. */
GP_API const char *gp_ctx_notice(const struct gp_ctx *ctx);
/*
 * What gpreemptd said, when this context connected, that this process may do, and is: GP_RIGHT_* bits and
 * those beside them.
 * -ENODEV: there is none; -ECONNRESET: it has gone; -EPERM: the context is another process's.
 */
GP_API int gp_ctx_rights(struct gp_ctx *ctx, uint32_t *ret_rights);

/*
 * Lists: the number of entries there are is returned, at most n are written.
 * infos[0].size says how large the caller's entries are; n of 0 only counts.
 */
GP_API int gp_device_list(struct gp_ctx *ctx, struct gp_device_info *infos, size_t n);
GP_API int gp_queue_list(struct gp_ctx *ctx, struct gp_queue_info *infos, size_t n);
/* One entry for each client and device. */
GP_API int gp_client_list(struct gp_ctx *ctx, struct gp_client_info *infos, size_t n);
/* The queue whose ring is at this address in process pid; 0: in this process. */
GP_API int gp_queue_find(struct gp_ctx *ctx, uint32_t pid, uint64_t ring, struct gp_queue_info *ret_info);

/*
 * All that can be done is done; the first error is returned.  ret_status (NULL,
 * or n entries) tells each queue's: 0, -ENOENT, -EBUSY, ...
 */
GP_API int gp_queue_suspend(struct gp_ctx *ctx, const uint64_t *queues, size_t n,
			    const struct gp_suspend_opts *opts, int32_t *ret_status);
GP_API int gp_queue_resume(struct gp_ctx *ctx, const uint64_t *queues, size_t n, int32_t *ret_status);

GP_API int gp_device_reserve(struct gp_ctx *ctx, uint32_t device, uint32_t online_percent,
			     uint32_t offline_percent);
/* What schedules a device from now on; GP_ALL_DEVICES: all of them. */
GP_API int gp_device_set_policy(struct gp_ctx *ctx, uint32_t device, const char *name);

/*
 * gpreemptd listens in the container of process pid, until that one ends: who comes by its socket is of this
 * class.  start: when the process started, field 22 of its stat in /proc; 0: whoever has the number.  For
 * root.
 */
GP_API int gp_container_attach(struct gp_ctx *ctx, uint32_t pid, uint64_t start, uint32_t client_class);
/*
 * Root says what a job may be; in a gpreemptd that a user runs, that user does.  Of a process that has been
 * declared the rest changes.
 */
GP_API int gp_job_declare(struct gp_ctx *ctx, const struct gp_job *job);
GP_API int gp_job_list(struct gp_ctx *ctx, struct gp_job_info *infos, size_t n);
GP_API int gp_device_stats(struct gp_ctx *ctx, uint32_t device, struct gp_stats *ret_stats);

/*
 * Say that a client's next request is on its way, before it reaches the GPU, and
 * that it is done. Hints expire, and die with the client.
 *
 * On a context of kfd any thread may call these two at any time, whatever other
 * threads do with the context. No answer is waited for, and no sentence is left:
 * -EAGAIN: this hint is lost, and nothing else.
 */
GP_API int gp_hint_begin(struct gp_ctx *ctx, const struct gp_hint *hint);
GP_API int gp_hint_end(struct gp_ctx *ctx, const struct gp_hint *hint);

/*
 * What gpreemptd did, those events that it keeps first. They have a connection of their own. Opening again
 * begins again. 1: an event; 0: none came in time, or there are no more.
 */
GP_API int gp_event_open(struct gp_ctx *ctx, const struct gp_event_opts *opts);
GP_API int gp_event_next(struct gp_ctx *ctx, uint64_t timeout_ns, struct gp_event *ret_event);

/*
 * A stream of this process as a queue with levels: an hsa_queue_t *, a CUstream, a cl_command_queue.  It
 * lasts until gp_stream_close(), which lets it go on, and not longer than ctx; ctx NULL: without INTERRUPT.
 * Any thread may use another stream; one context's streams are its thread's, where they are interrupted.
 * -ENODEV: nobody here can hold it; gp_ctx_errmsg() says what to start the program with.
 */
GP_API int gp_stream_open(struct gp_ctx *ctx, const void *stream, const struct gp_stream_opts *opts,
			  struct gp_stream **ret_stream);
GP_API struct gp_stream *gp_stream_close(struct gp_stream *stream);
GP_API int gp_stream_query(struct gp_stream *stream, struct gp_stream_info *ret_info);
/* -ENOTSUP: the sentence names the levels that there are. */
GP_API int gp_stream_set_level(struct gp_stream *stream, uint32_t level);
/* At its level, whichever that is: what it has launched is held, and goes on. */
GP_API int gp_stream_suspend(struct gp_stream *stream);
GP_API int gp_stream_resume(struct gp_stream *stream);

/* Lv1: at most n launches are in flight, 0: as many as take a millisecond; and wait until none is. */
GP_API int gp_stream_nlaunch(struct gp_stream *stream, uint32_t n);
GP_API int gp_stream_sync(struct gp_stream *stream, uint64_t timeout_ns);
/* Lv2 */
GP_API int gp_stream_deactivate(struct gp_stream *stream);
GP_API int gp_stream_reactivate(struct gp_stream *stream);
/* Lv3 */
GP_API int gp_stream_interrupt(struct gp_stream *stream);
GP_API int gp_stream_restore(struct gp_stream *stream);

GP_API int gp_client_set_class(struct gp_ctx *ctx, uint64_t client, uint32_t client_class);

#ifdef __cplusplus
}
#endif

#endif
