// SPDX-License-Identifier: MIT
/*
 * debugfs mqds: the stock driver's hex (amdkfd/kfd_process_queue_manager.c, pqm_debugfs_mqds()), the
 * annotated text of a private kernel, and any mixture.
 *
 * A compute queue's dump comes once for each XCC; only the first is read, the others repeat it.  An SDMA
 * queue that follows a compute queue is dumped as often, because the stock driver does not set num_xccs back
 * to 1: what follows its first dump is other queues' memory.
 */
#include <errno.h>
#include <string.h>

#include "discover/mqd.h"
#include "discover/scan.h"

#define WORDS (MQD_SIZE / 4)
#define LINE_BYTES (GP_HEX_WORDS * 4)

struct reader {
	struct gp_lines *in;
	struct gp_scan *scan;
	uint32_t pid; /* of the last "Process" line */
	int open;     /* the last of scan->mqds is being read */
	uint32_t texts, dumps,
		dump_end; /* of this queue: text lines, dumps begun, offset behind the last line */
	uint64_t known[WORDS / 64];
	uint32_t words[WORDS];
};

static struct gp_seen *current(struct reader *rd)
{
	return (struct gp_seen *)rd->scan->mqds.at + rd->scan->mqds.count - 1;
}

static uint32_t dump_size(const struct gp_seen *seen)
{
	return seen->q.kind == GP_KIND_COMPUTE ? MQD_SIZE : SDMA_SIZE;
}

static int word(const struct reader *rd, uint32_t offset, uint32_t *ret)
{
	uint32_t i = offset / 4;

	*ret = rd->words[i];
	return (rd->known[i / 64] >> (i % 64)) & 1;
}

static int word_pair(const struct reader *rd, uint32_t offset, uint64_t *ret)
{
	uint32_t low, high;

	if (!word(rd, offset, &low) || !word(rd, offset + 4, &high))
		return 0;
	*ret = (uint64_t)high << 32 | low;
	return 1;
}

/* Text that names a field wins over the dump. */
#define set_if_unknown(q, member, field, value) \
	do { \
		if ((q)->from[GP_FIELD_##field] == GP_SOURCE_UNKNOWN) \
			gp_set(q, member, field, value, GP_SOURCE_MQDS); \
	} while (0)

static void decode_compute(const struct reader *rd, struct gp_found_queue *q)
{
	uint32_t header, value;
	uint64_t address;

	if (!word(rd, MQD_HEADER, &header) || header != MQD_HEADER_VALUE)
		return;
	if (word_pair(rd, MQD_BASE, &address))
		q->mqd_address = address;
	if (word(rd, MQD_ACTIVE, &value))
		set_if_unknown(q, active, ACTIVE, value & MQD_ACTIVE_MASK);
	if (word(rd, MQD_PRIORITY, &value))
		set_if_unknown(q, priority, PRIORITY, value & MQD_PRIORITY_MASK);
	if (word_pair(rd, MQD_RING, &address))
		set_if_unknown(q, ring, RING, address << 8);
	if (word_pair(rd, MQD_RPTR_REPORT, &address))
		set_if_unknown(q, rptr_address, RPTR, address);
	if (word_pair(rd, MQD_WPTR_POLL, &address))
		set_if_unknown(q, wptr_address, WPTR, address);
	if (word(rd, MQD_DOORBELL, &value))
		set_if_unknown(q, doorbell, DOORBELL, (value & MQD_DOORBELL_MASK) >> 2);
	if (word(rd, MQD_RING_CONTROL, &value) && (value & MQD_RING_SIZE_MASK) < 40)
		set_if_unknown(q, ring_size, RING_SIZE, 8ULL << (value & MQD_RING_SIZE_MASK));
}

static void decode_sdma(const struct reader *rd, struct gp_seen *seen)
{
	struct gp_found_queue *q = &seen->q;
	uint32_t value, high;
	uint64_t address;

	if (word(rd, SDMA_RING_CONTROL, &value))
		set_if_unknown(q, ring_size, RING_SIZE,
			       4ULL << (value >> SDMA_RING_SIZE_SHIFT & SDMA_RING_SIZE_MASK));
	if (word_pair(rd, SDMA_RING, &address))
		set_if_unknown(q, ring, RING, address << 8);
	if (word(rd, SDMA_RPTR_LOW, &value) && word(rd, SDMA_RPTR_HIGH, &high))
		set_if_unknown(q, rptr_address, RPTR, (uint64_t)high << 32 | value);
	if (word(rd, SDMA_DOORBELL, &value))
		set_if_unknown(q, doorbell, DOORBELL, (value & MQD_DOORBELL_MASK) >> 2);
	if (word(rd, SDMA_ENGINE, &value))
		seen->engine = value;
}

/* A generation whose layout is not in mqd.h gives nothing; without a topology it is taken to be gfx9. */
static void decode(const struct reader *rd, struct gp_seen *seen)
{
	const struct gp_found_device *device = gp_scan_device(rd->scan, seen->q.gpu_id);
	uint32_t gfx = device ? device->gfx_target : 0;

	if (gfx && gfx < GFX8)
		return;
	if (seen->q.kind == GP_KIND_COMPUTE)
		decode_compute(rd, &seen->q);
	else if (gfx < GFX11)
		decode_sdma(rd, seen);
}

static void end_queue(struct reader *rd)
{
	struct gp_seen *seen;

	if (!rd->open)
		return;
	rd->open = 0;
	seen = current(rd);
	if (rd->dumps)
		decode(rd, seen);
	if (rd->scan->pid && seen->q.pid != rd->scan->pid)
		rd->scan->mqds.count--;
}

/* "0001:01:00.0" */
static int take_pci(struct gp_span s, uint64_t *ret)
{
	uint64_t domain, bus, device, function;

	if (!gp_span_hex(&s, &domain) || !gp_span_take(&s, ":") || !gp_span_hex(&s, &bus) ||
	    !gp_span_take(&s, ":") || !gp_span_hex(&s, &device) || !gp_span_take(&s, ".") ||
	    !gp_span_hex(&s, &function) || s.at != s.end)
		return 0;
	if (domain > UINT32_MAX || bus > 0xff || device > 0x1f || function > 7)
		return 0;
	*ret = domain << 16 | bus << 8 | device << 3 | function;
	return 1;
}

static int begin_queue(struct reader *rd, uint32_t kind, struct gp_span device)
{
	struct gp_seen *seen = gp_array_add(&rd->scan->mqds, sizeof(*seen));
	uint64_t gpu;

	if (!seen)
		return -ENOMEM;
	seen->order = (uint32_t)rd->scan->mqds.count;
	seen->engine = GP_NO_ENGINE;
	seen->pci = GP_NO_PCI;
	seen->q.pid = rd->pid;
	gp_set(&seen->q, kind, KIND, kind, GP_SOURCE_MQDS);
	gp_span_trim(&device);
	if (!take_pci(device, &seen->pci) && gp_span_hex(&device, &gpu) && device.at == device.end &&
	    gpu <= UINT32_MAX)
		gp_set(&seen->q, gpu_id, GPU, (uint32_t)gpu, GP_SOURCE_MQDS);
	rd->open = 1;
	rd->texts = rd->dumps = rd->dump_end = 0;
	memset(rd->known, 0, sizeof(rd->known));
	return 0;
}

/* "Process 56 PASID 0x8000:" */
static int process_line(struct reader *rd, struct gp_span s)
{
	uint64_t pid, pasid = UINT32_MAX;

	if (!gp_span_take(&s, "process ") || !gp_span_decimal(&s, &pid) || pid > INT32_MAX)
		return 0;
	if (gp_span_take(&s, " pasid ") && !gp_span_hex(&s, &pasid))
		return 0;
	end_queue(rd);
	rd->pid = (uint32_t)pid;
	if (rd->scan->pid && rd->scan->pid != pid)
		return 1;
	return gp_scan_client(rd->scan, rd->pid, (uint32_t)pasid) < 0 ? -ENOMEM : 1;
}

/* "Compute queue on device 96ab". Kinds nobody knows end the queue before them and are skipped. */
static int queue_line(struct reader *rd, struct gp_span s)
{
	struct gp_span kind = s;
	int r;

	if (!gp_span_find(&s, " on device "))
		return 0;
	end_queue(rd);
	if (gp_span_take(&kind, "compute queue on "))
		r = begin_queue(rd, GP_KIND_COMPUTE, s);
	else if (gp_span_take(&kind, "sdma queue on "))
		r = begin_queue(rd, GP_KIND_SDMA, s);
	else
		return 0;
	return r < 0 ? r : 1;
}

/* "Process: pid 12345 pasid 0x8001" */
static int text_process(struct reader *rd, struct gp_found_queue *q, struct gp_span s)
{
	uint64_t pid, pasid = UINT32_MAX;

	(void)gp_span_take(&s, "pid ");
	if (!gp_span_decimal(&s, &pid) || pid > INT32_MAX)
		return 0;
	if (gp_span_find(&s, "pasid ") && !gp_span_number(&s, &pasid))
		return 0;
	q->pid = (uint32_t)pid;
	if (rd->scan->pid && rd->scan->pid != pid)
		return 1;
	return gp_scan_client(rd->scan, q->pid, (uint32_t)pasid) < 0 ? -ENOMEM : 1;
}

static int text_active(struct gp_found_queue *q, struct gp_span s)
{
	int yes = gp_span_take(&s, "yes") || gp_span_take(&s, "true") || gp_span_take(&s, "1");

	if (!yes && !gp_span_take(&s, "no") && !gp_span_take(&s, "false") && !gp_span_take(&s, "0"))
		return 0;
	gp_set(q, active, ACTIVE, (uint32_t)yes, GP_SOURCE_MQDS);
	return 1;
}

static int is_key(struct gp_span key, const char *word)
{
	return gp_span_take(&key, word) && key.at == key.end;
}

/* "    Queue ID: 1 (0x1)": a private kernel's text, beside or in place of the dump. */
static int text_line(struct reader *rd, struct gp_span s)
{
	struct gp_found_queue *q;
	struct gp_span key;
	uint32_t number;
	uint64_t address;

	if (!rd->open || !memchr(s.at, ':', gp_span_len(&s)))
		return 0;
	q = &current(rd)->q;
	(void)gp_span_split(&s, ':', &key);
	gp_span_trim(&key);
	gp_span_trim(&s);
	if (is_key(key, "process"))
		return text_process(rd, q, s);
	if (is_key(key, "queue id") && gp_span_u32(&s, &number))
		gp_set(q, queue_id, ID, number, GP_SOURCE_MQDS);
	else if (is_key(key, "address") && gp_span_hex(&s, &address))
		gp_set(q, ring, RING, address, GP_SOURCE_MQDS);
	else if (is_key(key, "priority") && gp_span_u32(&s, &number))
		gp_set(q, priority, PRIORITY, number, GP_SOURCE_MQDS);
	else if (is_key(key, "is active") || is_key(key, "active"))
		return text_active(q, s);
	else
		return 0;
	return 1;
}

static void keep_words(struct reader *rd, uint32_t offset, const uint32_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = offset / 4 + i;

		if (at >= WORDS)
			return;
		rd->words[at] = words[i];
		rd->known[at / 64] |= 1ULL << (at % 64);
	}
}

/* Line i of a dump whose lines are all len long, read into the reader. */
static int regular_line(struct reader *rd, const char *dump, uint32_t i, size_t len, int keep)
{
	const char *line = dump + (i - 1) * len;
	uint32_t offset, words[GP_HEX_WORDS];

	if (line[len - 1] != '\n' || gp_hex_line(line, len - 1, &offset, words) != GP_HEX_WORDS ||
	    offset != i * LINE_BYTES)
		return 0;
	if (keep)
		keep_words(rd, offset, words, GP_HEX_WORDS);
	return 1;
}

/*
 * A dump is nearly always what is expected: lines of one length, one after the other.  Then only the lines
 * that matter are looked at, four of 64, and the next line is the one behind the dump.  Anything odd: nothing
 * is taken, and the dump is read line by line.
 */
static void jump_over_dump(struct reader *rd, size_t len)
{
	static const uint8_t compute[] = { MQD_BASE / LINE_BYTES, MQD_RING / LINE_BYTES,
					   MQD_RING_CONTROL / LINE_BYTES };
	static const uint8_t sdma[] = { SDMA_RPTR_HIGH / LINE_BYTES, SDMA_DOORBELL / LINE_BYTES };
	struct gp_seen *seen = current(rd);
	uint32_t last = dump_size(seen) / LINE_BYTES - 1;
	const char *dump = gp_lines_peek(rd->in, last * len);
	int first = rd->dumps == 1;
	int is_compute = seen->q.kind == GP_KIND_COMPUTE;
	const uint8_t *lines = is_compute ? compute : sdma;
	size_t n = is_compute ? sizeof(compute) : sizeof(sdma);

	if (!dump || !regular_line(rd, dump, last, len, first))
		return;
	for (size_t i = 0; first && i < n; i++)
		if (!regular_line(rd, dump, lines[i], len, 1))
			return;
	rd->dump_end = (last + 1) * LINE_BYTES;
	gp_lines_skip(rd->in, last * len, last);
}

static int dump_line(struct reader *rd, struct gp_span s)
{
	uint32_t words[GP_HEX_WORDS], offset, n;
	size_t len = gp_span_len(&s);

	n = gp_hex_line(s.at, len, &offset, words);
	if (!n)
		return 0;
	if (!rd->open)
		return 0;
	rd->dump_end = offset + n * 4;
	if (offset == 0)
		rd->dumps++;
	if (rd->dumps == 1)
		keep_words(rd, offset, words, n);
	if (offset == 0 && n == GP_HEX_WORDS)
		jump_over_dump(rd, len + 1);
	return 1;
}

static int read_line(struct reader *rd, struct gp_span s)
{
	int r = dump_line(rd, s);

	if (r)
		return r;
	gp_span_trim(&s);
	r = process_line(rd, s);
	if (!r)
		r = queue_line(rd, s);
	if (r)
		return r;
	r = text_line(rd, s);
	rd->texts += r > 0;
	return r;
}

/* Whether the queue that was read last lacks something that must have followed. */
static int is_cut(struct reader *rd)
{
	if (!rd->open)
		return 0;
	return rd->dumps ? rd->dump_end < dump_size(current(rd)) : !rd->texts;
}

int gp_mqds_parse(struct gp_lines *in, struct gp_scan *scan)
{
	struct gp_found_source *source = &scan->sources[GP_SOURCE_MQDS];
	struct reader rd = { .in = in, .scan = scan };
	struct gp_span line;

	while (gp_lines_next(in, &line)) {
		int r = read_line(&rd, line);

		if (r < 0)
			return r;
		source->skipped += !r && line.at < line.end;
	}
	source->truncated = is_cut(&rd) || in->partial;
	end_queue(&rd);
	return 0;
}
