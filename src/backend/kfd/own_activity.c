// SPDX-License-Identifier: MIT
/* Whether queues have work, and whether it has ended, from what their owner and the GPU keep in this
 * process's memory. */
#include "backend/kfd/own_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define AT_ONCE 128u   /* queues */
#define SPAN_MOST 128u /* bytes: pointers as near as this are read in one piece */
#define POINTER 8u     /* bytes of one */

/* HSA Platform System Architecture, 2.9; and ROCr's amd_signal_t, which is what the GPU counts down. */
#define AQL_PACKET 64u
#define AQL_COMPLETION_SIGNAL 56u
#define SIGNAL_VALUE 8u

/* One queue's pointers, and where they come to lie. */
struct pair {
	uint64_t rptr, wptr, ring, ring_size;
	uint32_t type, is_known;
	uint32_t first; /* of the pieces */
	uint32_t n;     /* 1 or 2 */
	uint32_t offset, bytes;
};

struct look {
	struct pair pairs[AT_ONCE];
	struct iovec pieces[2 * AT_ONCE];
	unsigned char bytes[AT_ONCE * SPAN_MOST];
};

/* 0, or -ENOENT for one of them. */
static int find_pairs(struct gp_own *own, const uint64_t *queues, size_t n, struct pair *pairs)
{
	gp_signals blocked;
	int r = 0;

	blocked = own_lock(own);
	for (size_t i = 0; i < n; i++) {
		const struct own_queue *q = own_find(own, queues[i]);

		pairs[i] = (struct pair){ .is_known = q != NULL };
		if (q) {
			pairs[i].rptr = q->rptr;
			pairs[i].wptr = q->wptr;
			pairs[i].ring = q->set.ring;
			pairs[i].ring_size = q->set.ring_size;
			pairs[i].type = q->type;
		} else {
			r = -ENOENT;
		}
	}
	own_unlock(own, blocked);
	return r;
}

static struct iovec piece(uint64_t address, uint64_t bytes)
{
	return (struct iovec){ (void *)(uintptr_t)address, bytes };
}

static void lay_out(struct look *look, size_t n)
{
	uint32_t pieces = 0, offset = 0;

	for (size_t i = 0; i < n; i++) {
		struct pair *p = &look->pairs[i];
		uint64_t low = p->rptr < p->wptr ? p->rptr : p->wptr;
		uint64_t high = p->rptr < p->wptr ? p->wptr : p->rptr;

		p->first = pieces;
		p->offset = offset;
		if (!p->is_known)
			continue;
		p->n = high - low > SPAN_MOST - POINTER ? 2 : 1;
		p->bytes = p->n == 2 ? 2 * POINTER : (uint32_t)(high - low) + POINTER;
		look->pieces[pieces] = piece(low, p->n == 2 ? POINTER : p->bytes);
		if (p->n == 2)
			look->pieces[pieces + 1] = piece(high, POINTER);
		pieces += p->n;
		offset += p->bytes;
	}
}

/*
 * Our own memory, up to the first piece that is none any more: the bytes, or -errno.  It is the writing call
 * because the kernel copies from its near side through the page tables, as read() and write() do: the far
 * side's pages are looked up, and a GPU's memory, mapped into a process, has none to find.
 */
static ssize_t copy_pieces(void *to, size_t bytes, const struct iovec *pieces, uint32_t n)
{
	struct iovec ours = { to, bytes };
	ssize_t r;

	memset(to, 0, bytes); /* whoever watches our memory does not know that the call writes there */
	r = process_vm_writev(own_this_thread(), pieces, n, &ours, 1, 0);
	return r < 0 ? -errno : r;
}

/* The same with calls that no sandbox refuses; but nothing is copied if not all of it can be. */
static ssize_t copy_by_pipe(void *to, size_t bytes, const struct iovec *pieces, uint32_t n)
{
	int ends[2];
	ssize_t r;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	r = writev(ends[1], pieces, (int)n);
	if (r > 0)
		r = read(ends[0], to, bytes);
	r = r < 0 ? -errno : r;
	(void)close(ends[0]);
	(void)close(ends[1]);
	return r;
}

typedef ssize_t (*copy_fn)(void *to, size_t bytes, const struct iovec *pieces, uint32_t n);

/* Reads as many queues as it can from the one at first on; returns the first that it did not read. */
static size_t read_from(struct look *look, size_t first, size_t n, copy_fn copy, int *ret_error)
{
	const struct pair *p = &look->pairs[first], *last = &look->pairs[n - 1];
	uint32_t bytes = last->offset + last->bytes - p->offset, pieces = last->first + last->n - p->first;
	ssize_t r = copy(look->bytes + p->offset, bytes, &look->pieces[p->first], pieces);
	uint32_t end = p->offset + (r > 0 ? (uint32_t)r : 0);
	size_t i = first;

	*ret_error = r < 0 ? (int)r : -EFAULT; /* of the first that it did not read, if there is one */
	while (i < n && look->pairs[i].offset + look->pairs[i].bytes <= end)
		i++;
	return i;
}

static struct gp_activity judge(const struct look *look, const struct pair *p)
{
	const unsigned char *low = look->bytes + p->offset, *high = low + p->bytes - POINTER;
	struct gp_activity a;
	uint64_t ring = p->ring_size / 4;
	int is_busy;

	memcpy(&a.rptr, p->rptr < p->wptr ? low : high, POINTER);
	memcpy(&a.wptr, p->rptr < p->wptr ? high : low, POINTER);
	is_busy = a.rptr != a.wptr;
	if (p->type ==
	    KFD_TYPE_COMPUTE) { /* PM4: read counts dwords of the ring, in 32 bits; written all of them */
		a.rptr = (uint32_t)a.rptr;
		is_busy = ring && a.rptr % ring != a.wptr % ring;
	}
	a.activity = is_busy ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;
	a.reserved = 0;
	return a;
}

static int is_refused(ssize_t error)
{
	return error == -EPERM || error == -ENOSYS;
}

/* All at once; by the pipe one at a time, because it copies all or nothing. */
static int look_at_pointers(struct look *look, size_t n, struct gp_activity *ret)
{
	copy_fn copy = copy_pieces;
	size_t i = 0, step = n, upto, end;
	int r = 0, error;

	lay_out(look, n);
	while (i < n) {
		upto = i + step < n ? i + step : n;
		end = read_from(look, i, upto, copy, &error);
		if (end < upto && copy == copy_pieces && is_refused(error)) {
			copy = copy_by_pipe;
			step = 1;
			continue;
		}
		for (; i < end; i++)
			if (look->pairs[i].is_known)
				ret[i] = judge(look, &look->pairs[i]);
		if (end < upto && look->pairs[end].is_known && !r)
			r = error;
		i += end < upto; /* the next call says of what follows */
	}
	return r;
}

static int read_word(uint64_t address, uint64_t *ret)
{
	const struct iovec theirs = piece(address, sizeof(*ret));
	ssize_t r = copy_pieces(ret, sizeof(*ret), &theirs, 1);

	if (is_refused(r))
		r = copy_by_pipe(ret, sizeof(*ret), &theirs, 1);
	return r == (ssize_t)sizeof(*ret) ? 0 : -EFAULT;
}

/* A signal that is not there any more says as little as none. */
static uint32_t judge_signal(uint64_t signal)
{
	uint64_t value;

	if (!signal || read_word(signal + SIGNAL_VALUE, &value) < 0)
		return GP_ACTIVITY_UNKNOWN;
	return (int64_t)value > 0 ? GP_ACTIVITY_BUSY : GP_ACTIVITY_IDLE;
}

/*
 * Of an AQL queue whose packets are all taken: whether the last one has ended.  Its place in the ring keeps
 * the name of its signal until another packet is written there, a whole ring later.
 */
static int look_at_last_packet(const struct pair *p, struct gp_activity *a)
{
	uint64_t slot, signal;
	int r;

	if (a->activity != GP_ACTIVITY_IDLE || p->type != KFD_TYPE_AQL || !a->wptr || !p->ring_size)
		return 0;
	slot = (a->wptr - 1) * AQL_PACKET % p->ring_size;
	r = read_word(p->ring + slot + AQL_COMPLETION_SIGNAL, &signal);
	a->activity = r < 0 ? GP_ACTIVITY_UNKNOWN : judge_signal(signal);
	return r;
}

enum depth { POINTERS, LAST_PACKET };

static int look_at(struct gp_own *own, const uint64_t *queues, size_t n, enum depth depth,
		   struct gp_activity *ret)
{
	struct look look;
	int r = find_pairs(own, queues, n, look.pairs), one = look_at_pointers(&look, n, ret);

	r = r ? r : one;
	for (size_t i = 0; depth == LAST_PACKET && i < n; i++) {
		one = look_at_last_packet(&look.pairs[i], &ret[i]);
		r = r ? r : one;
	}
	return r;
}

static int look_at_all(struct gp_own *own, const uint64_t *queues, size_t n, enum depth depth,
		       struct gp_activity *ret)
{
	int r = 0, one;

	memset(ret, 0, n * sizeof(*ret)); /* GP_ACTIVITY_UNKNOWN */
	for (size_t i = 0; i < n; i += AT_ONCE) {
		one = look_at(own, &queues[i], n - i < AT_ONCE ? n - i : AT_ONCE, depth, &ret[i]);
		if (!r)
			r = one;
	}
	return r;
}

int own_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	return look_at_all(own, queues, n, POINTERS, ret);
}

int own_finished(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	return look_at_all(own, queues, n, LAST_PACKET, ret);
}
