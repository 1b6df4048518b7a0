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

/* Two words that belong together, as a queue's pointers, and where they come to lie. */
struct pair {
	uint64_t rptr, wptr; /* their addresses: twice the same, if it is one word */
	uint64_t ring, ring_size;
	uint32_t type, is_known, is_read;
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

	blocked = gp_book_lock(&own->book);
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
	gp_book_unlock(&own->book, blocked);
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
	r = process_vm_writev(gp_this_thread(), pieces, n, &ours, 1, 0);
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
	ssize_t r = bytes ? copy(look->bytes + p->offset, bytes, &look->pieces[p->first], pieces) : 0;
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

/* All at once; by the pipe one at a time, because it copies all or nothing. The first error. */
static int read_pairs(struct look *look, size_t n)
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
			look->pairs[i].is_read = look->pairs[i].is_known;
		if (end < upto && look->pairs[end].is_known && !r)
			r = error;
		i += end < upto; /* the next call says of what follows */
	}
	return r;
}

static int look_at_pointers(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	struct look look;
	int r = find_pairs(own, queues, n, look.pairs), error = read_pairs(&look, n);

	for (size_t i = 0; i < n; i++)
		ret[i] = look.pairs[i].is_read ? judge(&look, &look.pairs[i])
					       : (struct gp_activity){ .activity = GP_ACTIVITY_UNKNOWN };
	return r ? r : error;
}

static struct pair word_at(uint64_t address)
{
	return (struct pair){ .rptr = address, .wptr = address, .is_known = address != 0 };
}

/* 0: it was not to be read, or is not there. */
static uint64_t word_of(const struct look *look, const struct pair *p)
{
	uint64_t word = 0;

	if (p->is_read)
		memcpy(&word, look->bytes + p->offset, sizeof(word));
	return word;
}

/*
 * Where the last packet of an AQL queue that is empty has the name of its signal; 0 of any other.  It stays
 * there until another packet is written to the same place, a whole ring later.
 */
static uint64_t last_signal(const struct pair *p, const struct gp_activity *a)
{
	if (a->activity != GP_ACTIVITY_IDLE || !p->is_known || p->type != KFD_TYPE_AQL || !a->wptr ||
	    !p->ring_size)
		return 0;
	return p->ring + (a->wptr - 1) * AQL_PACKET % p->ring_size + AQL_COMPLETION_SIGNAL;
}

/* Signals' names, then their values. One that is not there any more says as little as none. */
static int look_at_last_packets(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	struct look look;
	int r = find_pairs(own, queues, n, look.pairs), error;
	uint64_t signal;

	for (size_t i = 0; i < n; i++) {
		int is_gone = !look.pairs[i].is_known;

		look.pairs[i] = word_at(last_signal(&look.pairs[i], &ret[i]));
		if (is_gone || look.pairs[i].is_known)
			ret[i].activity = GP_ACTIVITY_UNKNOWN;
	}
	error = read_pairs(&look, n);
	for (size_t i = 0; i < n; i++) {
		signal = word_of(&look, &look.pairs[i]);
		look.pairs[i] = word_at(signal ? signal + SIGNAL_VALUE : 0);
	}
	(void)read_pairs(&look, n);
	for (size_t i = 0; i < n; i++)
		if (look.pairs[i].is_read)
			ret[i].activity = (int64_t)word_of(&look, &look.pairs[i]) > 0 ? GP_ACTIVITY_BUSY
										      : GP_ACTIVITY_IDLE;
	return r ? r : error;
}

typedef int (*look_fn)(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret);

static int look_at_all(struct gp_own *own, const uint64_t *queues, size_t n, look_fn look,
		       struct gp_activity *ret)
{
	int r = 0, one;

	for (size_t i = 0; i < n; i += AT_ONCE) {
		one = look(own, &queues[i], n - i < AT_ONCE ? n - i : AT_ONCE, &ret[i]);
		if (!r)
			r = one;
	}
	return r;
}

int own_activity(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	return look_at_all(own, queues, n, look_at_pointers, ret);
}

int own_finished(struct gp_own *own, const uint64_t *queues, size_t n, struct gp_activity *ret)
{
	return look_at_all(own, queues, n, look_at_last_packets, ret);
}
