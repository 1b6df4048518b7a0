// SPDX-License-Identifier: MIT
/*
 * A HIP runtime's log (AMD_LOG_LEVEL 3 or 4), of ROCm 5, 6 or 7 (clr, rocclr/device/rocm/rocdevice.cpp and
 * rocvirtual.cpp; the prefix: rocclr/utils/debug.cpp):
 *
 *	Created SWq=0x7f8ec8e86000 to map on HWq=0x7f8eb5c00000 with size 16384 with priority 1, ...
 *	SWq=0x7f8ec8e86000, HWq=0x7f8eb5c00000, id=1, Dispatch Header = ...
 *	HWq=0x7f8eb5c00000, Dispatch Header = ...                 (ROCm 5)
 *	Deleting hardware queue 0x7f8eb5c00000 with refCount 0    (ROCm 5 writes the SWq here)
 *
 * HWq is the address of the ring, id a counter of the runtime's: neither is the driver's queue id.  What
 * ROCm 5 writes when it creates a queue names the SWq alone: nothing can be joined by that.
 */
#include <errno.h>
#include <string.h>

#include "discover/scan.h"

#define MAX_QUEUES 2048 /* each line may look through all of them; the driver gives a process 1024 */
#define PACKET_BYTES 64 /* sizes are in AQL packets */

struct reader {
	struct gp_scan *scan;
	size_t last; /* the one the last line spoke of: mostly the next line's too */
};

/* "[pid:2539  tid:0x7fff...]", or ROCm 5's "us: 17154: [tid:0x7f08...]"; 0 if the line does not say. */
static uint32_t line_pid(struct gp_span s)
{
	struct gp_span rest = s;
	const char *digit;
	uint32_t pid = 0;

	if (gp_span_find(&rest, "[pid:")) {
		gp_span_trim(&rest);
		return gp_span_u32(&rest, &pid) && pid <= INT32_MAX ? pid : 0;
	}
	if (!gp_span_find(&s, ": [tid:"))
		return 0;
	digit = s.at - strlen(": [tid:");
	rest.end = digit;
	while (digit > rest.at && digit[-1] >= '0' && digit[-1] <= '9')
		digit--;
	rest.at = digit;
	return gp_span_u32(&rest, &pid) && pid <= INT32_MAX ? pid : 0;
}

static struct gp_seen *find(struct reader *rd, uint32_t pid, uint64_t ring)
{
	struct gp_seen *all = rd->scan->log.at;
	size_t count = rd->scan->log.count;

	if (rd->last < count && all[rd->last].q.ring == ring && all[rd->last].q.pid == pid)
		return &all[rd->last];
	for (size_t i = 0; i < count; i++)
		if (all[i].q.ring == ring && all[i].q.pid == pid) {
			rd->last = i;
			return &all[i];
		}
	return NULL;
}

/* The queue with this ring, made if need be; NULL: no memory, or too many. */
static struct gp_seen *take_queue(struct reader *rd, uint32_t pid, uint64_t ring)
{
	struct gp_seen *seen = find(rd, pid, ring);

	if (seen || rd->scan->log.count >= MAX_QUEUES)
		return seen;
	seen = gp_array_add(&rd->scan->log, sizeof(*seen));
	if (!seen)
		return NULL;
	seen->order = (uint32_t)rd->scan->log.count;
	seen->q.pid = pid;
	gp_set(&seen->q, ring, RING, ring, GP_SOURCE_LOG);
	gp_set(&seen->q, kind, KIND, GP_KIND_COMPUTE, GP_SOURCE_LOG);
	return seen;
}

/* HSA's low, normal and high are KFD's 0, 7 and 11: ROCr hsa_ext_amd.cpp and libhsakmt queues.c, ROCm 7. */
static void set_priority(struct gp_found_queue *q, uint64_t hsa)
{
	static const uint32_t kfd[] = { 0, 7, 11 };

	if (hsa < 3)
		gp_set(q, priority, PRIORITY, kfd[hsa], GP_SOURCE_LOG);
}

/* " with size 16384 with priority 1, cooperative: 0" */
static void created(struct gp_seen *seen, struct gp_span s)
{
	uint64_t number;

	/* The same address again: another queue. */
	seen->gone = 0;
	seen->q.from[GP_FIELD_RUNTIME_ID] = GP_SOURCE_UNKNOWN;
	if (gp_span_take(&s, " with size ") && gp_span_decimal(&s, &number) && number <= UINT32_MAX)
		gp_set(&seen->q, ring_size, RING_SIZE, number * PACKET_BYTES, GP_SOURCE_LOG);
	if (gp_span_find(&s, "with priority ") && gp_span_decimal(&s, &number))
		set_priority(&seen->q, number);
}

/* A line with "HWq=": s is behind it. */
static int ring_line(struct reader *rd, struct gp_span line, struct gp_span s)
{
	struct gp_span before = { line.at, s.at };
	struct gp_seen *seen;
	uint64_t ring, swq = 0;
	uint32_t id;

	if (!gp_span_hex(&s, &ring) || !ring)
		return 0;
	seen = take_queue(rd, line_pid(line), ring);
	if (!seen)
		return rd->scan->log.count >= MAX_QUEUES ? 0 : -ENOMEM;
	if (gp_span_find(&before, "SWq=") && gp_span_hex(&before, &swq))
		seen->swq = swq;
	if (gp_span_find(&line, "Created SWq="))
		created(seen, s);
	(void)gp_span_take(&s, ",");
	gp_span_trim(&s);
	if (gp_span_take(&s, "id=") && gp_span_u32(&s, &id))
		gp_set(&seen->q, runtime_id, RUNTIME_ID, id, GP_SOURCE_LOG);
	return 1;
}

/* "Deleting hardware queue 0x... with refCount 0": a ring or an SWq. */
static int deleted(struct reader *rd, struct gp_span line, struct gp_span s)
{
	struct gp_seen *all = rd->scan->log.at;
	uint32_t pid = line_pid(line);
	struct gp_seen *seen;
	uint64_t address;

	if (!gp_span_hex(&s, &address))
		return 0;
	seen = find(rd, pid, address);
	for (size_t i = rd->scan->log.count; !seen && i > 0; i--)
		if (all[i - 1].swq == address && all[i - 1].q.pid == pid && !all[i - 1].gone)
			seen = &all[i - 1];
	if (seen)
		seen->gone = 1;
	return 1;
}

/* 1: about a queue, and understood; 0: about a queue, not understood; 2: about something else. */
static int read_line(struct reader *rd, struct gp_span line)
{
	struct gp_span s = line;

	if (gp_span_find(&s, "HWq="))
		return ring_line(rd, line, s);
	if (gp_span_find(&s, "eleting hardware queue "))
		return deleted(rd, line, s);
	return 2;
}

int gp_log_parse(struct gp_lines *in, struct gp_scan *scan)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_LOG];
	struct reader rd = { .scan = scan };
	struct gp_span line;
	int r = 0;

	while (r >= 0 && gp_lines_next(in, &line)) {
		r = read_line(&rd, line);
		source->skipped += r == 0;
	}
	source->truncated = in->partial;
	return r < 0 ? r : 0;
}
