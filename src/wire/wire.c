// SPDX-License-Identifier: MIT
#include "wire/wire.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define HEADER 16    /* length, type, version, flags, serial */
#define ITEM_FIRST 4 /* fields that an item had at first */
#define PLACE 4      /* with GP_WIRE_STRIDES, after the header: where the first item is, and the stride */

/* -MAX_ERRNO, include/linux/err.h, Linux 6.12: an errno can be negated, INT32_MIN cannot. */
#define LEAST_STATUS ((uint32_t)-4095)

/* One field of a message, and with that its place in the packet: fields follow each other as listed. */
struct field {
	uint16_t offset; /* in struct gp_msg, or in an item */
	uint8_t bytes;
	uint8_t text;
	uint32_t most;  /* of an enum or a truth; 0: any value */
	uint32_t least; /* of a status: negative numbers are the highest here */
	uint32_t or_zero;
};

#define FIELD(type, name, text, most, least, or_zero) \
	{ \
		offsetof(type, name), sizeof(((type *)0)->name), text, most, least, or_zero \
	}
#define NUMBER(name) FIELD(struct gp_msg, name, 0, 0, 0, 0)
#define ERRNO(name) FIELD(struct gp_msg, name, 0, 0, LEAST_STATUS, 0)
#define STATUS(name) FIELD(struct gp_msg, name, 0, 0, LEAST_STATUS, 1)
#define ENUM(name, last) FIELD(struct gp_msg, name, 0, last, 0, 0)
#define ENUM_FROM(name, first, last) FIELD(struct gp_msg, name, 0, last, first, 0)
#define TEXT(name) FIELD(struct gp_msg, name, 1, 0, 0, 0)
/* Of an array. */
#define NUMBERS6(name, at) \
	NUMBER(name[at]), NUMBER(name[at + 1]), NUMBER(name[at + 2]), NUMBER(name[at + 3]), \
		NUMBER(name[at + 4]), NUMBER(name[at + 5])
#define LATENCIES(name) \
	NUMBER(name.count), NUMBER(name.sum_ns), NUMBERS6(name.at_most, 0), NUMBERS6(name.at_most, 6), \
		NUMBERS6(name.at_most, 12), NUMBER(name.at_most[18])

_Static_assert(GP_LATENCY_BOUNDS == 19 && GP_FAILURES == 6 && GP_ATTEMPTS == 3,
	       "a later release has more of them: fields of their own");

/* New fields go to the end, before the empty one; those of a release before may be all that a packet has. */
static const struct field hello_fields[] = {
	ENUM(hello.role, GP_ROLE_PROXY),
	NUMBER(hello.ways),
	NUMBER(hello.pid),
	ENUM(hello.seen, GP_CLASS_ONLINE),
	TEXT(hello.name),
	TEXT(hello.tag),
	NUMBER(hello.features),
	NUMBER(hello.weight),
	NUMBER(hello.slo_ns),
	{ 0 },
};

static const struct field welcome_fields[] = {
	NUMBER(welcome.lease_ns),
	NUMBER(welcome.rights),
	ENUM(welcome.sample, 1),
	NUMBER(welcome.features),
	{ 0 },
};

static const struct field error_fields[] = { ERRNO(error.status), TEXT(error.text), { 0 } };

static const struct field no_fields[] = { { 0 } };

static const struct field queue_fields[] = {
	NUMBER(queue.queue),     NUMBER(queue.ring),
	NUMBER(queue.ring_size), NUMBER(queue.queue_id),
	NUMBER(queue.gpu_id),    ENUM(queue.kind, GP_KIND_XGMI),
	NUMBER(queue.priority),  NUMBER(queue.percent),
	ENUM(queue.stopped, 1),  { 0 },
};

static const struct field gone_fields[] = { NUMBER(queue.queue), { 0 } };

static const struct field activity_fields[] = {
	NUMBER(activity.queue),
	NUMBER(activity.rptr),
	NUMBER(activity.wptr),
	ENUM(activity.activity, GP_ACTIVITY_BUSY),
	{ 0 },
};

static const struct field items_fields[] = {
	NUMBER(items.lease_ns), NUMBER(items.timeout_ns),
	NUMBER(items.way),      ENUM(items.type, GP_PREEMPT_RESET),
	NUMBER(items.hold),     NUMBER(items.n),
	TEXT(items.text),       { 0 },
};

static const struct field device_fields[] = {
	TEXT(device.name),
	TEXT(device.backend),
	TEXT(device.policy),
	NUMBER(device.device),
	NUMBER(device.caps),
	NUMBER(device.compute_units),
	NUMBER(device.queue_slots),
	NUMBER(device.online_percent),
	NUMBER(device.offline_percent),
	NUMBER(device.gpu_id),
	TEXT(device.pci),
	NUMBER(device_key[0]),
	NUMBER(device_key[1]),
	NUMBER(device.instances),
	{ 0 },
};

static const struct field info_fields[] = {
	NUMBER(info.queue),
	NUMBER(info.client),
	TEXT(info.client_name),
	NUMBER(info.device),
	NUMBER(info.priority),
	ENUM(info.client_class, GP_CLASS_ONLINE),
	ENUM(info.state, GP_QUEUE_RESUMING),
	ENUM(info.activity, GP_ACTIVITY_BUSY),
	ENUM(info.held, 1),
	NUMBER(info.ring),
	NUMBER(info.pid),
	NUMBER(info.queue_id),
	NUMBER(info.gpu_id),
	ENUM(info.kind, GP_KIND_XGMI),
	ENUM(info.active, 1),
	NUMBER(info.known),
	TEXT(info.way),
	TEXT(info.rule),
	TEXT(info.place),
	TEXT(info.from),
	NUMBER(info.local_pid),
	{ 0 },
};

static const struct field reserve_fields[] = {
	NUMBER(reserve.device),
	NUMBER(reserve.online_percent),
	NUMBER(reserve.offline_percent),
	{ 0 },
};

static const struct field hint_fields[] = {
	NUMBER(hint.client),    NUMBER(hint.number),
	NUMBER(hint.expiry_ns), ENUM_FROM(hint.what, GP_HINT_BEGIN, GP_HINT_END),
	NUMBER(hint.device),    { 0 },
};

static const struct field policy_fields[] = { NUMBER(policy.device), TEXT(policy.name), { 0 } };

static const struct field client_info_fields[] = {
	NUMBER(client_info.client),
	TEXT(client_info.name),
	NUMBER(client_info.pid),
	NUMBER(client_info.uid),
	NUMBER(client_info.device),
	ENUM(client_info.client_class, GP_CLASS_ONLINE),
	NUMBER(client_info.weight),
	ENUM(client_info.state, GP_CLIENT_HELD),
	NUMBER(client_info.slo_ns),
	NUMBER(client_info.queues),
	NUMBER(client_info.stopped),
	NUMBER(client_info.hints),
	NUMBER(client_info.share_permille),
	NUMBER(client_info.hinted),
	NUMBER(client_info.sampled),
	TEXT(client_info.rule),
	TEXT(client_info.place),
	NUMBER(client_info.resuming),
	{ 0 },
};

static const struct field stats_fields[] = { NUMBER(stats.device), { 0 } };

static const struct field stats_info_fields[] = {
	NUMBER(stats_info.preemptions),
	NUMBER(stats_info.cycles),
	NUMBER(stats_info.suspends),
	NUMBER(stats_info.resumes),
	NUMBER(stats_info.failures),
	NUMBER(stats_info.suspend_p50_ns),
	NUMBER(stats_info.suspend_p99_ns),
	NUMBER(stats_info.suspend_max_ns),
	NUMBER(stats_info.backoff_until_ns),
	NUMBER(stats_info.policy_ejected),
	TEXT(stats_info.reason),
	NUMBER(stats_info.limited),
	NUMBER(stats_info.resume_p50_ns),
	NUMBER(stats_info.resume_p99_ns),
	NUMBER(stats_info.resume_max_ns),
	NUMBER(stats_info.hints),
	NUMBER(stats_info.samples),
	NUMBER(stats_info.device),
	NUMBER(stats_info.reserved),
	TEXT(stats_info.policy),
	TEXT(stats_info.ejection),
	NUMBER(stats_info.yielding),
	NUMBER(stats_info.stopped),
	NUMBER(stats_info.slices),
	NUMBER(stats_info.slice_failures),
	ENUM(stats_info.has_details, 1),
	NUMBER(stats_info.backing_off),
	LATENCIES(stats_info.suspend),
	LATENCIES(stats_info.resume),
	LATENCIES(stats_info.online),
	NUMBER(stats_info.hints_expired),
	NUMBER(stats_info.slo_requests),
	NUMBER(stats_info.slo_met),
	NUMBER(stats_info.starved),
	NUMBER(stats_info.offline_run_ns),
	NUMBER(stats_info.offline_wait_ns),
	NUMBER(stats_info.online_run_ns),
	NUMBER(stats_info.online_wait_ns),
	NUMBERS6(stats_info.failed[GP_ATTEMPT_SUSPEND], 0),
	NUMBERS6(stats_info.failed[GP_ATTEMPT_RESUME], 0),
	NUMBERS6(stats_info.failed[GP_ATTEMPT_YIELD], 0),
	NUMBER(stats_info.reason_age_ns),
	{ 0 },
};

static const struct field clients_fields[] = { ENUM(clients.own, 1), { 0 } };

static const struct field events_fields[] = {
	ENUM(events.follow, 1), NUMBER(events.kinds), ENUM(events.only_new, 1), { 0 }
};

/* A kind that came later is no reason to lose the others: whoever reads passes it over. */
static const struct field event_fields[] = {
	NUMBER(event.number),     NUMBER(event.at_ns),
	ENUM(event.kind, 31),     NUMBER(event.device),
	NUMBER(event.client),     NUMBER(event.queue),
	NUMBER(event.latency_ns), NUMBER(event.pid),
	STATUS(event.status),     TEXT(event.client_name),
	TEXT(event.way),          TEXT(event.text),
	NUMBER(event.tried),      { 0 },
};

static const struct field attach_fields[] = {
	NUMBER(attach.pid),
	ENUM_FROM(attach.client_class, GP_CLASS_OFFLINE, GP_CLASS_ONLINE),
	NUMBER(attach.start),
	{ 0 },
};

static const struct field class_fields[] = {
	NUMBER(class.client),
	ENUM_FROM(class.client_class, GP_CLASS_OFFLINE, GP_CLASS_ONLINE),
	{ 0 },
};

static const struct field job_fields[] = {
	NUMBER(job.pid),
	ENUM_FROM(job.client_class, GP_CLASS_OFFLINE, GP_CLASS_ONLINE),
	NUMBER(job.start),
	NUMBER(job.slo_ns),
	ENUM(job.weight, GP_MOST_WEIGHT),
	ENUM(job.floor_permille, 1000),
	NUMBER(job.patience_ns),
	TEXT(job.name),
	TEXT(job.cgroup),
	{ 0 },
};

static const struct field job_info_fields[] = {
	TEXT(job_info.name),
	NUMBER(job_info.pid),
	ENUM_FROM(job_info.client_class, GP_CLASS_OFFLINE, GP_CLASS_ONLINE),
	NUMBER(job_info.weight),
	NUMBER(job_info.clients),
	NUMBER(job_info.slo_ns),
	NUMBER(job_info.ran_ns),
	NUMBER(job_info.waits),
	NUMBER(job_info.waited_ns),
	NUMBER(job_info.requests),
	NUMBER(job_info.within_slo),
	NUMBER(job_info.with_slo),
	NUMBER(job_info.p50_ns),
	NUMBER(job_info.p99_ns),
	NUMBER(job_info.max_ns),
	NUMBER(job_info.starving_ns),
	ENUM(job_info.is_starved, 1),
	ENUM(job_info.is_partial, 1),
	{ 0 },
};

static const struct field item_fields[] = {
	FIELD(struct gp_wire_item, queue, 0, 0, 0, 0),
	FIELD(struct gp_wire_item, want, 0, GP_STOP, 0, 0),
	FIELD(struct gp_wire_item, status, 0, 0, LEAST_STATUS, 1),
	FIELD(struct gp_wire_item, latency_ns, 0, 0, 0, 0),
	{ 0 },
};

struct layout {
	const struct field *fields;
	size_t first; /* so many it had when it was new: they must be there */
};

static const struct kind {
	const char *name;
	struct layout layout;
	bool items;
	size_t sized; /* of a struct that begins with its size */
} kinds[GP_MSG_TYPES] = {
	[GP_MSG_HELLO] = { "HELLO", { hello_fields, 6 }, false, 0 },
	[GP_MSG_WELCOME] = { "WELCOME", { welcome_fields, 3 }, false, 0 },
	[GP_MSG_ERROR] = { "ERROR", { error_fields, 2 }, false, 0 },
	[GP_MSG_PING] = { "PING", { no_fields, 0 }, false, 0 },
	[GP_MSG_QUEUE] = { "QUEUE", { queue_fields, 9 }, false, 0 },
	[GP_MSG_GONE] = { "GONE", { gone_fields, 1 }, false, 0 },
	[GP_MSG_ACTIVITY] = { "ACTIVITY", { activity_fields, 4 }, false, 0 },
	[GP_MSG_WANTS] = { "WANTS", { items_fields, 7 }, true, 0 },
	[GP_MSG_DONE] = { "DONE", { items_fields, 7 }, true, 0 },
	[GP_MSG_LIST] = { "LIST", { no_fields, 0 }, false, 0 },
	[GP_MSG_DEVICE] = { "DEVICE", { device_fields, 7 }, false, sizeof(struct gp_device_info) },
	[GP_MSG_QUEUE_INFO] = { "QUEUE_INFO", { info_fields, 20 }, false, sizeof(struct gp_queue_info) },
	[GP_MSG_END] = { "END", { no_fields, 0 }, false, 0 },
	[GP_MSG_HOLD] = { "HOLD", { items_fields, 7 }, true, 0 },
	[GP_MSG_RELEASE] = { "RELEASE", { items_fields, 7 }, true, 0 },
	[GP_MSG_RESERVE] = { "RESERVE", { reserve_fields, 3 }, false, 0 },
	[GP_MSG_RESULT] = { "RESULT", { items_fields, 7 }, true, 0 },
	[GP_MSG_HINT] = { "HINT", { hint_fields, 5 }, false, 0 },
	[GP_MSG_POLICY] = { "POLICY", { policy_fields, 2 }, false, 0 },
	[GP_MSG_CLIENTS] = { "CLIENTS", { clients_fields, 0 }, false, 0 },
	[GP_MSG_CLIENT_INFO] = { "CLIENT_INFO",
				 { client_info_fields, 17 },
				 false,
				 sizeof(struct gp_client_info) },
	[GP_MSG_STATS] = { "STATS", { stats_fields, 1 }, false, 0 },
	[GP_MSG_STATS_INFO] = { "STATS_INFO", { stats_info_fields, 21 }, false, sizeof(struct gp_stats) },
	[GP_MSG_EVENTS] = { "EVENTS", { events_fields, 2 }, false, 0 },
	[GP_MSG_EVENT] = { "EVENT", { event_fields, 12 }, false, sizeof(struct gp_event) },
	[GP_MSG_ATTACH] = { "ATTACH", { attach_fields, 3 }, false, 0 },
	[GP_MSG_CLASS] = { "CLASS", { class_fields, 2 }, false, 0 },
	[GP_MSG_JOB] = { "JOB", { job_fields, 9 }, false, 0 },
	[GP_MSG_JOBS] = { "JOBS", { no_fields, 0 }, false, 0 },
	[GP_MSG_JOB_INFO] = { "JOB_INFO", { job_info_fields, 18 }, false, sizeof(struct gp_job_info) },
};

_Static_assert(HEADER + PLACE + 2 * 8 + 4 * 4 + 192 + GP_WIRE_MOST_ITEMS * 24 <= GP_WIRE_MOST_BYTES,
	       "a message with all its items is too long");

static const struct kind *kind_of(uint32_t type)
{
	return type < GP_MSG_TYPES && kinds[type].name ? &kinds[type] : NULL;
}

/* Numbers of the two usual sizes at once, and not byte by byte: messages have many. */
static uint64_t get(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;
	uint32_t narrow;

	if (bytes == sizeof(value)) {
		memcpy(&value, at, sizeof(value));
		return le64toh(value);
	}
	if (bytes == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return le32toh(narrow);
	}
	for (size_t i = bytes; i > 0; i--)
		value = value << 8 | at[i - 1];
	return value;
}

static void put(unsigned char *at, size_t bytes, uint64_t value)
{
	const uint64_t wide = htole64(value); /* its first bytes are those of a narrower one */

	if (bytes == sizeof(wide))
		memcpy(at, &wide, sizeof(wide));
	else if (bytes == sizeof(uint32_t))
		memcpy(at, &wide, sizeof(uint32_t));
	else
		memcpy(at, &wide, bytes);
}

static uint64_t number_in(const void *base, const struct field *f)
{
	const unsigned char *at = (const unsigned char *)base + f->offset;
	uint64_t wide;
	uint32_t narrow;

	if (f->bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void set_number(void *base, const struct field *f, uint64_t value)
{
	unsigned char *at = (unsigned char *)base + f->offset;
	uint32_t narrow = (uint32_t)value;

	if (f->bytes == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

/* What follows the terminator is nobody's. */
static void set_text(void *base, const struct field *f, const unsigned char *from)
{
	const char *text = (const char *)from;

	(void)gp_text_copy((char *)base + f->offset, f->bytes, text, strlen(text));
}

static bool text_ends(const void *text, size_t bytes)
{
	return memchr(text, 0, bytes) != NULL;
}

static bool fits(uint64_t value, const struct field *f)
{
	return (f->or_zero && !value) || (value >= f->least && (!f->most || value <= f->most));
}

static size_t size_of(const struct field *fields, size_t n)
{
	size_t size = 0;

	for (size_t i = 0; i < n; i++)
		size += fields[i].bytes;
	return size;
}

static size_t count(const struct field *fields)
{
	size_t n = 0;

	while (fields[n].bytes)
		n++;
	return n;
}

static bool sendable_fields(const struct field *f, const void *base)
{
	for (; f->bytes; f++)
		if (f->text ? !text_ends((const char *)base + f->offset, f->bytes)
			    : !fits(number_in(base, f), f))
			return false;
	return true;
}

static bool sendable(const struct kind *k, const struct gp_msg *msg)
{
	if (!sendable_fields(k->layout.fields, msg))
		return false;
	if (!k->items)
		return true;
	if (msg->items.n > GP_WIRE_MOST_ITEMS)
		return false;
	for (uint32_t i = 0; i < msg->items.n; i++)
		if (!sendable_fields(item_fields, &msg->item[i]))
			return false;
	return true;
}

static unsigned char *put_fields(unsigned char *at, const struct field *fields, size_t n, const void *base)
{
	for (const struct field *f = fields; f < fields + n; at += f->bytes, f++) {
		if (f->text) {
			memset(at, 0, f->bytes);
			memcpy(at, (const char *)base + f->offset, strlen((const char *)base + f->offset));
		} else {
			put(at, f->bytes, number_in(base, f));
		}
	}
	return at;
}

static bool is_zero(const struct field *f, const void *base)
{
	return f->text ? !*((const char *)base + f->offset) : !number_in(base, f);
}

/* How many to write: zeros at the end need not be there, if they came later. */
static size_t fields_of(const struct layout *l, const void *base)
{
	size_t n = count(l->fields);

	while (n > l->first && is_zero(&l->fields[n - 1], base))
		n--;
	return n;
}

static void put_header(unsigned char *at, size_t size, uint32_t flags, const struct gp_msg *msg)
{
	put(at, 4, size);
	put(at + 4, 2, msg->type);
	put(at + 6, 2, GP_WIRE_VERSION);
	put(at + 8, 4, flags);
	put(at + 12, 4, msg->serial);
}

/* What of a message is written: how many fields, of it and of an item, and where the items begin. */
struct plan {
	size_t fields, items, item_fields, stride, size;
	uint32_t flags;
};

/* A reader of the first release looks for the items where the fields ended then. */
static struct plan plan(const struct kind *k, const struct gp_msg *msg, uint32_t features)
{
	uint32_t flags = k->items && features & GP_FEATURE_STRIDES ? GP_WIRE_STRIDES : 0;
	bool later = flags || !k->items;
	struct plan p = { .flags = flags };

	p.fields = later ? fields_of(&k->layout, msg) : k->layout.first;
	p.items = HEADER + (flags ? PLACE : 0) + size_of(k->layout.fields, p.fields);
	p.item_fields = later ? count(item_fields) : ITEM_FIRST;
	p.stride = size_of(item_fields, p.item_fields);
	p.size = p.items + (k->items ? msg->items.n * p.stride : 0);
	return p;
}

int gp_wire_encode(const struct gp_msg *msg, uint32_t features, void *packet, size_t size)
{
	const struct kind *k = kind_of(msg->type);
	unsigned char *at = packet;
	struct plan p;

	if (!k || !sendable(k, msg))
		return -EINVAL;
	p = plan(k, msg, features);
	if (p.size > size)
		return -ENOBUFS;
	put_header(at, p.size, p.flags, msg);
	at += HEADER;
	if (p.flags) {
		put(at, 2, p.items);
		put(at + 2, 2, p.stride);
		at += PLACE;
	}
	at = put_fields(at, k->layout.fields, p.fields, msg);
	for (uint32_t i = 0; k->items && i < msg->items.n; i++)
		at = put_fields(at, item_fields, p.item_fields, &msg->item[i]);
	return (int)p.size;
}

static int check_header(const unsigned char *at, size_t size, const struct kind **ret)
{
	if (size < HEADER || size > GP_WIRE_MOST_BYTES || get(at, 4) != size)
		return -EBADMSG;
	if (get(at + 6, 2) != GP_WIRE_VERSION)
		return -EPROTO;
	if (get(at + 8, 4) & ~(uint64_t)GP_WIRE_STRIDES)
		return -EBADMSG;
	*ret = kind_of((uint32_t)get(at + 4, 2));
	return *ret ? 0 : -ENOMSG;
}

/* Where the parts of a packet are: the fields end where the items begin. */
struct parts {
	size_t fields, items, stride;
	uint64_t n;
};

/* false: not where the sender says. */
static bool find_parts(const struct kind *k, const unsigned char *packet, size_t size, struct parts *ret)
{
	bool strides = get(packet + 8, 4) & GP_WIRE_STRIDES;
	size_t first = size_of(k->layout.fields, k->layout.first);
	size_t least = size_of(item_fields, ITEM_FIRST);

	if (strides && (!k->items || size < HEADER + PLACE))
		return false;
	ret->fields = HEADER + (strides ? PLACE : 0);
	ret->items = k->items ? HEADER + first : size;
	ret->stride = least;
	if (strides) {
		ret->items = get(packet + HEADER, 2);
		ret->stride = get(packet + HEADER + 2, 2);
	}
	return ret->items >= ret->fields + first && ret->items <= size && ret->stride >= least;
}

/* There is room for those it had at first; of the later ones there are as many as the sender knows. */
static bool good_fields(const struct field *f, const unsigned char *at, size_t room)
{
	for (; f->bytes; f++) {
		if (room < f->bytes)
			return !room;
		if (f->text ? !text_ends(at, f->bytes) : !fits(get(at, f->bytes), f))
			return false;
		at += f->bytes;
		room -= f->bytes;
	}
	return true;
}

/* n stands before the text, which is the last of the fields that there were at first. */
static uint64_t items_in(const unsigned char *fields)
{
	return get(fields + 2 * 8 + 3 * 4, 4);
}

static bool good_items(const unsigned char *packet, size_t size, const struct parts *p)
{
	if (p->n > GP_WIRE_MOST_ITEMS || size - p->items < p->n * p->stride)
		return false;
	for (uint64_t i = 0; i < p->n; i++)
		if (!good_fields(item_fields, packet + p->items + i * p->stride, p->stride))
			return false;
	return true;
}

static int check(const struct kind *k, const unsigned char *packet, size_t size, struct parts *ret)
{
	if (!find_parts(k, packet, size, ret))
		return -EBADMSG;
	if (!good_fields(k->layout.fields, packet + ret->fields, ret->items - ret->fields))
		return -EBADMSG;
	ret->n = k->items ? items_in(packet + ret->fields) : 0;
	return good_items(packet, size, ret) ? 0 : -EBADMSG;
}

/* base is zero: what is not there stays so. */
static void get_fields(const struct field *f, const unsigned char *at, size_t room, void *base)
{
	for (; f->bytes && room >= f->bytes; at += f->bytes, room -= f->bytes, f++) {
		if (f->text)
			set_text(base, f, at);
		else
			set_number(base, f, get(at, f->bytes));
	}
}

int gp_wire_decode(const void *packet, size_t size, struct gp_msg *ret)
{
	const unsigned char *at = packet;
	const struct kind *k;
	struct parts p;
	int r;

	r = check_header(at, size, &k);
	if (r < 0)
		return r;
	r = check(k, at, size, &p);
	if (r < 0)
		return r;
	memset(ret, 0, offsetof(struct gp_msg, item));
	ret->type = (uint32_t)get(at + 4, 2);
	ret->serial = (uint32_t)get(at + 12, 4);
	get_fields(k->layout.fields, at + p.fields, p.items - p.fields, ret);
	memset(ret->item, 0, p.n * sizeof(ret->item[0])); /* for fields that a sender may not have */
	for (uint64_t i = 0; i < p.n; i++)
		get_fields(item_fields, at + p.items + i * p.stride, p.stride, &ret->item[i]);
	if (k->sized)
		ret->device.size = k->sized; /* the first of each such struct */
	return 0;
}

const char *gp_msg_name(uint32_t type)
{
	const struct kind *k = kind_of(type);

	return k ? k->name : "?";
}

static const struct {
	const char *name;
	uint32_t way;
} ways[] = {
	{ "auto", GP_KFD_WAY_AUTO },       { "update", GP_KFD_WAY_UPDATE },   { "dbg", GP_KFD_WAY_DBG },
	{ "private", GP_KFD_WAY_PRIVATE }, { "session", GP_KFD_WAY_SESSION }, { "park", GP_NVRM_WAY_PARK },
};

#define NWAYS (sizeof(ways) / sizeof(ways[0]))

const char *gp_way_name(uint32_t way)
{
	for (size_t i = 0; i < NWAYS; i++)
		if (ways[i].way == way)
			return ways[i].name;
	return "?";
}

int gp_way_by_name(const char *name, uint32_t *ret_way)
{
	for (size_t i = 0; i < NWAYS; i++) {
		if (!strcmp(ways[i].name, name)) {
			*ret_way = ways[i].way;
			return 0;
		}
	}
	return -EINVAL;
}
