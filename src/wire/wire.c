// SPDX-License-Identifier: MIT
#include "wire/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define HEADER 16 /* length, type, version, flags, serial */
#define ITEM 24   /* queue, want, status, latency_ns */

/* -MAX_ERRNO, include/linux/err.h, Linux 6.12: an errno can be negated, INT32_MIN cannot. */
#define LEAST_STATUS ((uint32_t)-4095)

/* One field of a message, and with that its place in the packet: fields follow each other as listed. */
struct field {
	uint16_t offset; /* in struct gp_msg */
	uint8_t bytes;
	uint8_t text;
	uint32_t most;  /* of an enum or a truth; 0: any value */
	uint32_t least; /* of an error's status: negative numbers are the highest here */
};

#define NUMBER(name) \
	{ \
		offsetof(struct gp_msg, name), sizeof(((struct gp_msg *)0)->name), 0, 0, 0 \
	}
#define ERRNO(name) \
	{ \
		offsetof(struct gp_msg, name), sizeof(((struct gp_msg *)0)->name), 0, 0, LEAST_STATUS \
	}
#define ENUM(name, last) \
	{ \
		offsetof(struct gp_msg, name), sizeof(((struct gp_msg *)0)->name), 0, last, 0 \
	}
#define TEXT(name) \
	{ \
		offsetof(struct gp_msg, name), sizeof(((struct gp_msg *)0)->name), 1, 0, 0 \
	}
static const struct field hello_fields[] = {
	ENUM(hello.role, GP_ROLE_PROXY),
	NUMBER(hello.ways),
	NUMBER(hello.pid),
	ENUM(hello.seen, GP_CLASS_ONLINE),
	TEXT(hello.name),
	TEXT(hello.tag),
	{ 0 },
};

static const struct field welcome_fields[] = {
	NUMBER(welcome.lease_ns),
	NUMBER(welcome.rights),
	ENUM(welcome.sample, 1),
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
	TEXT(device.name),   TEXT(device.backend),         TEXT(device.policy),        NUMBER(device.device),
	NUMBER(device.caps), NUMBER(device.compute_units), NUMBER(device.queue_slots), { 0 },
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
	{ 0 },
};

static const struct field reserve_fields[] = {
	NUMBER(reserve.device),
	NUMBER(reserve.online_percent),
	NUMBER(reserve.offline_percent),
	{ 0 },
};

static const struct kind {
	const char *name;
	const struct field *fields;
	bool items;
} kinds[GP_MSG_TYPES] = {
	[GP_MSG_HELLO] = { "HELLO", hello_fields, false },
	[GP_MSG_WELCOME] = { "WELCOME", welcome_fields, false },
	[GP_MSG_ERROR] = { "ERROR", error_fields, false },
	[GP_MSG_PING] = { "PING", no_fields, false },
	[GP_MSG_QUEUE] = { "QUEUE", queue_fields, false },
	[GP_MSG_GONE] = { "GONE", gone_fields, false },
	[GP_MSG_ACTIVITY] = { "ACTIVITY", activity_fields, false },
	[GP_MSG_WANTS] = { "WANTS", items_fields, true },
	[GP_MSG_DONE] = { "DONE", items_fields, true },
	[GP_MSG_LIST] = { "LIST", no_fields, false },
	[GP_MSG_DEVICE] = { "DEVICE", device_fields, false },
	[GP_MSG_QUEUE_INFO] = { "QUEUE_INFO", info_fields, false },
	[GP_MSG_END] = { "END", no_fields, false },
	[GP_MSG_HOLD] = { "HOLD", items_fields, true },
	[GP_MSG_RELEASE] = { "RELEASE", items_fields, true },
	[GP_MSG_RESERVE] = { "RESERVE", reserve_fields, false },
	[GP_MSG_RESULT] = { "RESULT", items_fields, true },
};

_Static_assert(HEADER + 2 * 8 + 4 * 4 + 192 + GP_WIRE_MOST_ITEMS * ITEM <= GP_WIRE_MOST_BYTES,
	       "a message with all its items is too long");

static const struct kind *kind_of(uint32_t type)
{
	return type < GP_MSG_TYPES && kinds[type].name ? &kinds[type] : NULL;
}

static uint64_t get(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = bytes; i > 0; i--)
		value = value << 8 | at[i - 1];
	return value;
}

static void put(unsigned char *at, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes; i++, value >>= 8)
		at[i] = (unsigned char)value;
}

static uint64_t number_in(const struct gp_msg *msg, const struct field *f)
{
	const unsigned char *at = (const unsigned char *)msg + f->offset;
	uint64_t wide;
	uint32_t narrow;

	if (f->bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void set_number(struct gp_msg *msg, const struct field *f, uint64_t value)
{
	unsigned char *at = (unsigned char *)msg + f->offset;
	uint32_t narrow = (uint32_t)value;

	if (f->bytes == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

/* What follows the terminator is nobody's. */
static void set_text(struct gp_msg *msg, const struct field *f, const unsigned char *from)
{
	const char *text = (const char *)from;

	(void)gp_text_copy((char *)msg + f->offset, f->bytes, text, strlen(text));
}

static bool text_ends(const void *text, size_t bytes)
{
	return memchr(text, 0, bytes) != NULL;
}

static bool fits(uint64_t value, const struct field *f)
{
	return value >= f->least && (!f->most || value <= f->most);
}

static bool good_item(uint64_t want, uint64_t status)
{
	return want <= GP_STOP && (!status || status >= LEAST_STATUS);
}

static size_t fields_size(const struct kind *k)
{
	size_t size = 0;

	for (const struct field *f = k->fields; f->bytes; f++)
		size += f->bytes;
	return size;
}

static bool sendable(const struct kind *k, const struct gp_msg *msg)
{
	for (const struct field *f = k->fields; f->bytes; f++) {
		if (f->text ? !text_ends((const char *)msg + f->offset, f->bytes)
			    : !fits(number_in(msg, f), f))
			return false;
	}
	if (!k->items)
		return true;
	if (msg->items.n > GP_WIRE_MOST_ITEMS)
		return false;
	for (uint32_t i = 0; i < msg->items.n; i++)
		if (!good_item(msg->item[i].want, (uint32_t)msg->item[i].status))
			return false;
	return true;
}

static unsigned char *put_fields(unsigned char *at, const struct kind *k, const struct gp_msg *msg)
{
	for (const struct field *f = k->fields; f->bytes; at += f->bytes, f++) {
		if (f->text) {
			memset(at, 0, f->bytes);
			memcpy(at, (const char *)msg + f->offset, strlen((const char *)msg + f->offset));
		} else {
			put(at, f->bytes, number_in(msg, f));
		}
	}
	return at;
}

static void put_item(unsigned char *at, const struct gp_wire_item *item)
{
	put(at, 8, item->queue);
	put(at + 8, 4, item->want);
	put(at + 12, 4, (uint32_t)item->status);
	put(at + 16, 8, item->latency_ns);
}

static void get_item(const unsigned char *at, struct gp_wire_item *ret)
{
	ret->queue = get(at, 8);
	ret->want = (uint32_t)get(at + 8, 4);
	ret->status = (int32_t)(uint32_t)get(at + 12, 4);
	ret->latency_ns = get(at + 16, 8);
}

int gp_wire_encode(const struct gp_msg *msg, void *packet, size_t size)
{
	const struct kind *k = kind_of(msg->type);
	unsigned char *at = packet;
	size_t need;

	if (!k || !sendable(k, msg))
		return -EINVAL;
	need = HEADER + fields_size(k) + (k->items ? (size_t)msg->items.n * ITEM : 0);
	if (need > size)
		return -ENOBUFS;
	put(at, 4, need);
	put(at + 4, 2, msg->type);
	put(at + 6, 2, GP_WIRE_VERSION);
	put(at + 8, 4, 0);
	put(at + 12, 4, msg->serial);
	at = put_fields(at + HEADER, k, msg);
	for (uint32_t i = 0; k->items && i < msg->items.n; i++)
		put_item(at + (size_t)i * ITEM, &msg->item[i]);
	return (int)need;
}

static int check_header(const unsigned char *at, size_t size, const struct kind **ret)
{
	if (size < HEADER || size > GP_WIRE_MOST_BYTES || get(at, 4) != size)
		return -EBADMSG;
	if (get(at + 6, 2) != GP_WIRE_VERSION)
		return -EPROTO;
	if (get(at + 8, 4)) /* flags: there are none yet */
		return -EBADMSG;
	*ret = kind_of((uint32_t)get(at + 4, 2));
	return *ret ? 0 : -ENOMSG;
}

static bool good_fields(const struct kind *k, const unsigned char *at)
{
	for (const struct field *f = k->fields; f->bytes; at += f->bytes, f++)
		if (f->text ? !text_ends(at, f->bytes) : !fits(get(at, f->bytes), f))
			return false;
	return true;
}

static bool good_items(const unsigned char *at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (!good_item(get(at + i * ITEM + 8, 4), get(at + i * ITEM + 12, 4)))
			return false;
	return true;
}

/* n stands before the text, which is the last of the fields. */
static uint64_t items_in(const unsigned char *fields)
{
	return get(fields + 2 * 8 + 3 * 4, 4);
}

static int check(const struct kind *k, const unsigned char *packet, size_t size, uint64_t *ret_items)
{
	size_t fixed = HEADER + fields_size(k);
	uint64_t n = 0;

	if (size < fixed || !good_fields(k, packet + HEADER))
		return -EBADMSG;
	if (k->items)
		n = items_in(packet + HEADER);
	if (n > GP_WIRE_MOST_ITEMS || size - fixed < n * ITEM || !good_items(packet + fixed, n))
		return -EBADMSG;
	*ret_items = n;
	return 0;
}

static const unsigned char *get_fields(const struct kind *k, const unsigned char *at, struct gp_msg *ret)
{
	for (const struct field *f = k->fields; f->bytes; at += f->bytes, f++) {
		if (f->text)
			set_text(ret, f, at);
		else
			set_number(ret, f, get(at, f->bytes));
	}
	return at;
}

int gp_wire_decode(const void *packet, size_t size, struct gp_msg *ret)
{
	const unsigned char *at = packet;
	const struct kind *k;
	uint64_t n;
	int r;

	r = check_header(at, size, &k);
	if (r < 0)
		return r;
	r = check(k, at, size, &n);
	if (r < 0)
		return r;
	memset(ret, 0, offsetof(struct gp_msg, item));
	ret->type = (uint32_t)get(at + 4, 2);
	ret->serial = (uint32_t)get(at + 12, 4);
	at = get_fields(k, at + HEADER, ret);
	for (uint64_t i = 0; i < n; i++)
		get_item(at + i * ITEM, &ret->item[i]);
	if (ret->type == GP_MSG_DEVICE)
		ret->device.size = sizeof(ret->device);
	if (ret->type == GP_MSG_QUEUE_INFO)
		ret->info.size = sizeof(ret->info);
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
	{ "auto", GP_KFD_WAY_AUTO },
	{ "update", GP_KFD_WAY_UPDATE },
	{ "dbg", GP_KFD_WAY_DBG },
	{ "private", GP_KFD_WAY_PRIVATE },
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
