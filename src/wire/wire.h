/* SPDX-License-Identifier: MIT */
/*
 * What gpreemptd, the agents and the tools say to each other, one message in each
 * packet of a SOCK_SEQPACKET socket.  Encodes, decodes and checks; no I/O.
 *
 * A packet: u32 length, u16 type, u16 version, u32 flags, u32 serial, then the type's
 * fields, all little-endian, no gaps.  The fields that its type had at first must be there;
 * a later one that is not there is zero, and what comes after the last is ignored: peers
 * are of different releases.  An unknown type is -ENOMSG: skip it.  An unknown flag is
 * refused, and so is a value that its enum does not have, or a status that is no negative
 * errno (an item's or an event's may be 0).  A text has its array's length in the packet and
 * ends within it; what is no text comes out as '?': base/text.h.  docs/PROTOCOL.md has the
 * table.
 */
#ifndef GP_WIRE_WIRE_H
#define GP_WIRE_WIRE_H

#include <gpreempt/backend.h>

#include "base/places.h"

#define GP_WIRE_VERSION 1
#define GP_WIRE_MOST_ITEMS 1024u
#define GP_WIRE_MOST_BYTES 32768u /* of a packet */
#define GP_WIRE_SOCKET GP_RUN_FOLDER "/" GP_SOCKET_NAME
#define GP_WIRE_USER_SOCKET GP_RUN_NAME "/" GP_SOCKET_NAME /* in XDG_RUNTIME_DIR */

#define GP_WIRE_STRIDES \
	(1u << 0) /* a flag: u16 offset of the first item and u16 stride follow the header \
		   */

/* What a peer can do that not all could: HELLO says what the sender can, WELCOME what both can. */
#define GP_FEATURE_STRIDES (1u << 0)    /* reads GP_WIRE_STRIDES */
#define GP_FEATURE_ATTACH (1u << 1)     /* the daemon: knows ATTACH */
#define GP_FEATURE_NEW_EVENTS (1u << 2) /* the daemon: knows events.only_new */
#define GP_FEATURE_JOBS (1u << 3)       /* the daemon: knows JOB and JOBS */
#define GP_FEATURE_CLASS (1u << 4)      /* the daemon: knows CLASS */
#define GP_FEATURES \
	(GP_FEATURE_STRIDES | GP_FEATURE_ATTACH | GP_FEATURE_NEW_EVENTS | GP_FEATURE_JOBS | GP_FEATURE_CLASS)

enum gp_msg_type {
	GP_MSG_HELLO = 1, /* first, from whoever connects */
	GP_MSG_WELCOME,   /* its answer */
	GP_MSG_ERROR,     /* the answer to anything that was refused as a whole */
	GP_MSG_PING, /* from the daemon, every third of the lease; any of its messages renews the lease */

	/* an agent's */
	GP_MSG_QUEUE,    /* it has this queue, or the queue is now like this */
	GP_MSG_GONE,     /* and has it no more */
	GP_MSG_ACTIVITY, /* busy or idle, when that changes */
	GP_MSG_WANTS,    /* to an agent: items it should change */
	GP_MSG_DONE,     /* and how that went: same serial, same items */

	/* a tool's */
	GP_MSG_LIST, /* answered by DEVICE and QUEUE_INFO messages, then END */
	GP_MSG_DEVICE,
	GP_MSG_QUEUE_INFO,
	GP_MSG_END,     /* from a proxy: it has told of all queues that it sees */
	GP_MSG_HOLD,    /* suspend the items; RESULT answers when all have ended */
	GP_MSG_RELEASE, /* give them back: the sender's own holds, or everybody's if it has none */
	GP_MSG_RESERVE,
	GP_MSG_RESULT, /* same serial, same items, with their statuses */

	GP_MSG_HINT,    /* work is on its way, or done; serial 0: not answered */
	GP_MSG_POLICY,  /* what schedules a device from now on */
	GP_MSG_CLIENTS, /* answered by CLIENT_INFO messages, then END */
	GP_MSG_CLIENT_INFO,
	GP_MSG_STATS, /* answered by STATS_INFO */
	GP_MSG_STATS_INFO,
	GP_MSG_EVENTS, /* answered by EVENT messages, then END unless it follows */
	GP_MSG_EVENT,
	GP_MSG_ATTACH, /* a container that runs already is of a class from now on */
	GP_MSG_JOB,    /* what the processes of a job are at the most */
	GP_MSG_JOBS,   /* answered by JOB_INFO messages, then END */
	GP_MSG_JOB_INFO,
	GP_MSG_CLASS, /* what a client is from now on */
	GP_MSG_TYPES
};

enum gp_role { GP_ROLE_AGENT = 1, GP_ROLE_CONTROL, GP_ROLE_PROXY };

struct gp_wire_item {
	uint64_t queue;      /* an agent's own number to and from it, the daemon's handle to and from tools */
	uint32_t want;       /* enum gp_want_kind */
	int32_t status;      /* in answers: 0 or -errno */
	uint64_t latency_ns; /* in answers: from the call to its end */
};

struct gp_msg_hello {
	uint32_t role, ways;
	uint32_t pid;  /* a proxy's target; else only a hint: the daemon asks the kernel who is there */
	uint32_t seen; /* the client's class as its environment says: enum gp_class */
	char name[GP_NAME_LEN];
	char tag[64]; /* AMD_QUEUE_TAG, or empty */
	uint32_t features;
	uint32_t weight; /* 0: it does not say */
	uint64_t slo_ns; /* 0: none */
};

struct gp_msg_welcome {
	uint64_t lease_ns;
	uint32_t rights; /* GP_RIGHT_*, and what gp_ctx_rights() tells besides */
	uint32_t sample; /* 1: tell busy from idle */
	uint32_t features;
};

struct gp_msg_error {
	int32_t status;
	char text[192];
};

struct gp_msg_queue {
	uint64_t queue; /* the agent's number for it; never used twice */
	uint64_t ring, ring_size;
	uint32_t queue_id, gpu_id, kind, priority, percent;
	uint32_t stopped; /* 1: by us */
};

struct gp_msg_activity {
	uint64_t queue, rptr, wptr;
	uint32_t activity;
};

/* Of WANTS, DONE, HOLD, RELEASE and RESULT. */
struct gp_msg_items {
	uint64_t lease_ns;   /* HOLD: 0 is as long as the connection */
	uint64_t timeout_ns; /* WANTS and HOLD: of a drain, and of the driver's call in the private way */
	uint32_t way;        /* GP_KFD_WAY_*: asked for; in answers: used */
	uint32_t type;       /* enum gp_preempt_type */
	uint32_t hold;       /* HOLD: GP_HOLD_* */
	uint32_t n;
	char text[192]; /* RESULT: what there is to say, as that another way was taken; else empty */
};

#define GP_DEFAULT_TIMEOUT_NS 1000000000ull /* what timeout_ns 0 stands for */
#define GP_HOLD_NEW_QUEUES (1u << 0)        /* also what these clients create while it lasts */
#define GP_HOLD_STRICT (1u << 1) /* a drain that does not come to its end fails: it is not saved instead */

struct gp_msg_reserve {
	uint32_t device, online_percent, offline_percent;
};

enum gp_hint_what { GP_HINT_BEGIN = 1, GP_HINT_END };

struct gp_msg_hint {
	uint64_t client;    /* 0: the sender's own process */
	uint64_t number;    /* the sender's choice; an end has its begin's */
	uint64_t expiry_ns; /* 0: the daemon's default */
	uint32_t what;      /* enum gp_hint_what */
	uint32_t device;    /* or GP_ALL_DEVICES */
};

struct gp_msg_policy {
	uint32_t device; /* or GP_ALL_DEVICES */
	char name[GP_NAME_LEN];
};

struct gp_msg_stats {
	uint32_t device;
};

struct gp_msg_clients {
	uint32_t own; /* 1: the sender's process alone */
};

struct gp_msg_events {
	uint32_t follow;   /* 1: also those to come */
	uint32_t kinds;    /* bits, 1 << enum gp_event_kind; 0: all */
	uint32_t only_new; /* 1: none of those that are kept */
};

struct gp_msg_attach {
	uint32_t pid;          /* a process of the container: it lasts as long as that one */
	uint32_t client_class; /* enum gp_class, not unknown */
	uint64_t start;        /* of the process, in clock ticks after boot; 0: whoever has the number */
};

struct gp_msg_class {
	uint64_t client;
	uint32_t client_class; /* enum gp_class, not unknown */
};

#define GP_MOST_WEIGHT 10000u

struct gp_msg_job {
	uint32_t pid;
	uint32_t client_class; /* enum gp_class, not unknown */
	uint64_t start, slo_ns;
	uint32_t weight, floor_permille;
	uint64_t patience_ns;
	char name[64];
	char cgroup[192]; /* empty: the process's descendants */
};

struct gp_msg {
	uint32_t type, serial;
	union {
		struct gp_msg_hello hello;
		struct gp_msg_welcome welcome;
		struct gp_msg_error error;
		struct gp_msg_queue queue; /* QUEUE; GONE uses its first field alone */
		struct gp_msg_activity activity;
		struct gp_msg_items items;
		struct gp_msg_reserve reserve;
		struct gp_msg_hint hint;
		struct gp_msg_policy policy;
		struct gp_msg_stats stats;
		struct gp_msg_clients clients;
		struct gp_msg_events events;
		struct gp_msg_attach attach;
		struct gp_msg_class class;
		struct gp_msg_job job;
		struct {
			struct gp_device_info device;
			uint64_t device_key[2]; /* told: what a simulated GPU's own programs know; 0: none */
		};
		struct gp_queue_info info;
		struct gp_client_info client_info;
		struct gp_stats stats_info;
		struct gp_event event;
		struct gp_job_info job_info;
	};
	struct gp_wire_item item[GP_WIRE_MOST_ITEMS]; /* the first items.n */
};

/*
 * features: the reader's; 0: it may be of the first release.  The packet's bytes, or -EINVAL: not a message
 * one may send; -ENOBUFS: size is too small.
 */
int gp_wire_encode(const struct gp_msg *msg, uint32_t features, void *packet, size_t size);
/* 0; -EBADMSG: not a message; -EPROTO: another version; -ENOMSG: a type this version does not know. */
int gp_wire_decode(const void *packet, size_t size, struct gp_msg *ret);
const char *gp_msg_name(uint32_t type);
const char *gp_way_name(uint32_t way);                   /* "update", "dbg", "private", "session", "auto" */
int gp_way_by_name(const char *name, uint32_t *ret_way); /* -EINVAL */

#endif
