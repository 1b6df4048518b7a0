// SPDX-License-Identifier: MIT
/*
 * Jobs, as Slurm's accounting prints them:
 *	sacct -a -X -P -o JobID,Submit,ElapsedRaw,AllocTRES
 * The first line names the columns; those that are not needed may be there.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/units.h"
#include "ini/words.h"
#include "study/parse.h"

#define MAX_JOBS 1000000ull
#define MAX_FIELDS 128
#define MAX_FIELD 256
#define MAX_ELAPSED (10 * 366 * 86400ull)
#define FIRST_YEAR 1970 /* seconds since then are positive, ... */
#define LAST_YEAR 2400  /* ... and ns between two of these fit into 64 bits */

enum column { JOB_ID, SUBMIT, ELAPSED_RAW, ELAPSED, ALLOC_TRES, REQ_TRES, ALLOC_GRES, REQ_GRES, NCOLUMNS };

static const char *const column_names[NCOLUMNS] = {
	"JobID", "Submit", "ElapsedRaw", "Elapsed", "AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES",
};

struct field {
	const char *at;
	size_t len;
};

struct reader {
	struct gp_place at;
	struct gp_sacct *ret;
	uint64_t room;
	size_t nfields;          /* of the heading */
	size_t column[NCOLUMNS]; /* its place in a line */
	int has_column[NCOLUMNS];
	struct field fields[MAX_FIELDS]; /* of this line */
};

static size_t split(struct field *fields, const char *line, size_t len)
{
	size_t n = 0, begin = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && line[i] != '|')
			continue;
		if (n < MAX_FIELDS)
			fields[n] = (struct field){ line + begin, i - begin };
		n++;
		begin = i + 1;
	}
	return n;
}

static int is_called(const struct field *f, const char *name)
{
	return f->len == strlen(name) && !strncasecmp(f->at, name, f->len);
}

static int read_heading(struct reader *rd, const char *line, size_t len)
{
	rd->nfields = split(rd->fields, line, len);
	if (rd->nfields > MAX_FIELDS)
		return gp_complain(&rd->at, "more than %d columns; ask sacct for fewer, by -o", MAX_FIELDS);
	for (size_t i = 0; i < rd->nfields; i++) {
		for (int c = 0; c < NCOLUMNS; c++) {
			if (rd->has_column[c] || !is_called(&rd->fields[i], column_names[c]))
				continue;
			rd->has_column[c] = 1;
			rd->column[c] = i;
		}
	}
	if (rd->has_column[JOB_ID] && rd->has_column[SUBMIT] &&
	    (rd->has_column[ELAPSED] || rd->has_column[ELAPSED_RAW]) &&
	    (rd->has_column[ALLOC_TRES] || rd->has_column[REQ_TRES] || rd->has_column[ALLOC_GRES] ||
	     rd->has_column[REQ_GRES]))
		return 0;
	return gp_complain(&rd->at,
			   "a column is missing; the first line must name them, as printed by: sacct -a -X "
			   "-P -o JobID,Submit,ElapsedRaw,AllocTRES");
}

/* The field as text, cut to size; "" if there is no such column. */
static const char *text_of(const struct reader *rd, enum column c, char text[MAX_FIELD])
{
	const struct field *f = &rd->fields[rd->column[c]];
	size_t len = f->len < MAX_FIELD ? f->len : MAX_FIELD - 1;

	text[0] = '\0';
	if (!rd->has_column[c])
		return text;
	memcpy(text, f->at, len);
	text[len] = '\0';
	return text;
}

int gp_date_parse(const char *text, int64_t *ret_s)
{
	struct tm tm = { 0 }, again;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	time_t t;

	if (!end || *end || tm.tm_year < FIRST_YEAR - 1900 || tm.tm_year > LAST_YEAR - 1900)
		return -EINVAL;
	again = tm;
	t = timegm(&again); /* the zone does not matter: times are only compared */
	if (again.tm_mon != tm.tm_mon)
		return -EINVAL; /* the 31st of a shorter month */
	*ret_s = (int64_t)t;
	return 0;
}

/* [[DD-]HH:]MM:SS */
static int parse_elapsed(const char *text, uint64_t *ret_s)
{
	unsigned int d = 0, h = 0, m, s;
	int n = 0;

	if (sscanf(text, "%6u-%2u:%2u:%2u%n", &d, &h, &m, &s, &n) != 4 || text[n]) {
		d = 0;
		n = 0;
		if (sscanf(text, "%6u:%2u:%2u%n", &h, &m, &s, &n) != 3 || text[n]) {
			h = 0;
			n = 0;
			if (sscanf(text, "%2u:%2u%n", &m, &s, &n) != 2 || text[n])
				return -EINVAL;
		}
	}
	if (m > 59 || s > 60)
		return -EINVAL;
	*ret_s = d * 86400ull + h * 3600ull + m * 60ull + s;
	return 0;
}

static int read_elapsed(const struct reader *rd, uint64_t *ret_s)
{
	char text[MAX_FIELD];
	int r;

	if (rd->has_column[ELAPSED_RAW])
		r = gp_count_parse(text_of(rd, ELAPSED_RAW, text), ret_s);
	else
		r = parse_elapsed(text_of(rd, ELAPSED, text), ret_s);
	if (r < 0 || *ret_s > MAX_ELAPSED)
		return gp_complain(&rd->at, "\"%.32s\" is no time that a job took; %s", text,
				   rd->has_column[ELAPSED_RAW] ? "ElapsedRaw is in seconds, as in: 3600"
							       : "Elapsed is as in: 1-02:30:00");
	return 0;
}

static int read_submit(const struct reader *rd, int64_t *ret_s)
{
	char text[MAX_FIELD];

	if (gp_date_parse(text_of(rd, SUBMIT, text), ret_s) < 0)
		return gp_complain(&rd->at,
				   "\"%.32s\" is no time of submission; write it as in: 2026-03-02T08:15:00",
				   text);
	return 0;
}

/* What stands behind a name in "a=1,gres/gpu=4,gres/gpu:mi308x=4", or in the older "gpu:mi308x:4". */
static uint64_t count_of(const struct field *list, const char *name)
{
	const char *const end = list->at + list->len;
	uint64_t plain = 0, typed = 0, n;
	size_t len = strlen(name), item;

	for (const char *at = list->at; at < end; at += item + 1) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *number = comma ? comma : end;

		item = (size_t)(number - at);
		if (item <= len || strncmp(at, name, len) || !strchr("=:", at[len]))
			continue;
		while (isdigit((unsigned char)number[-1]))
			number--;
		n = number < at + item ? strtoull(number, NULL, 10) : 0;
		if (number == at + len + 1)
			plain += n;
		else
			typed += n;
	}
	return plain ? plain : typed; /* both count the same GPUs */
}

static uint64_t gpus_in(const struct field *list)
{
	uint64_t n = count_of(list, "gres/gpu");

	n = n ? n : count_of(list, "gpu");
	if (!n && (count_of(list, "gres/shard") || count_of(list, "shard")))
		n = 1; /* a part of one */
	return n;
}

static uint64_t read_gpus(const struct reader *rd)
{
	static const enum column columns[] = { ALLOC_TRES, ALLOC_GRES, REQ_TRES, REQ_GRES };

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		const enum column c = columns[i];
		uint64_t n = rd->has_column[c] ? gpus_in(&rd->fields[rd->column[c]]) : 0;

		if (n)
			return n;
	}
	return 0;
}

static int add_job(struct reader *rd, int64_t submit_s, uint64_t elapsed_s, uint64_t gpus)
{
	struct gp_sacct *ret = rd->ret;
	char name[MAX_FIELD];

	if (ret->njobs == MAX_JOBS)
		return gp_complain(&rd->at, "more than %llu jobs; use a shorter trace", MAX_JOBS);
	if (ret->njobs == rd->room) {
		uint64_t room = rd->room ? rd->room * 2 : 256;
		struct gp_cluster_job *jobs = realloc(ret->jobs, room * sizeof(*jobs));

		if (!jobs)
			return -ENOMEM;
		ret->jobs = jobs;
		rd->room = room;
	}
	text_of(rd, JOB_ID, name);
	name[GP_JOB_NAME - 1] = '\0';
	ret->jobs[ret->njobs] =
		(struct gp_cluster_job){ .submit_ns = (uint64_t)submit_s, /* seconds, until all are known */
					 .length_ns = elapsed_s * GP_S,
					 .gpus = gpus,
					 .line = rd->at.line };
	memcpy(ret->jobs[ret->njobs++].name, name, GP_JOB_NAME);
	return 0;
}

static int read_line(struct reader *rd, const char *line, size_t len)
{
	char id[MAX_FIELD];
	uint64_t elapsed_s = 0, gpus;
	int64_t submit_s = 0;
	size_t n;
	int r;

	n = split(rd->fields, line, len);
	if (n != rd->nfields)
		return gp_complain(&rd->at,
				   "%zu fields, and %zu columns; ask sacct for columns without a | in them",
				   n, rd->nfields);
	text_of(rd, JOB_ID, id);
	if (!id[0])
		return gp_complain(&rd->at, "the job has no number; print the trace again with: sacct -P");
	if (strchr(id, '.'))
		return 0; /* a step: its job has a line of its own */
	r = read_submit(rd, &submit_s);
	if (r == 0)
		r = read_elapsed(rd, &elapsed_s);
	if (r < 0)
		return r;
	gpus = read_gpus(rd);
	rd->ret->never_ran += !elapsed_s;
	rd->ret->without_gpu += elapsed_s && !gpus;
	return elapsed_s && gpus ? add_job(rd, submit_s, elapsed_s, gpus) : 0;
}

static int read_lines(struct reader *rd, const char *text)
{
	int r = 0;

	while (*text && r == 0) {
		size_t len = strcspn(text, "\n"), used = len;

		rd->at.line++;
		if (used && text[used - 1] == '\r')
			used--;
		if (used)
			r = rd->nfields ? read_line(rd, text, used) : read_heading(rd, text, used);
		text += len + (text[len] == '\n');
	}
	if (r == 0 && !rd->ret->njobs)
		return gp_complain(&rd->at,
				   "no job that ran on a GPU in it; print it with: sacct -a -X -P -o "
				   "JobID,Submit,ElapsedRaw,AllocTRES");
	return r;
}

static int earlier(const void *a, const void *b)
{
	const struct gp_cluster_job *x = a, *y = b;

	if (x->submit_ns != y->submit_ns)
		return x->submit_ns < y->submit_ns ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* From seconds of a date to time since the beginning; what came before that goes. */
static void count_from(struct gp_sacct *s, uint64_t begin_s)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->njobs; i++) {
		if (s->jobs[i].submit_ns < begin_s)
			continue;
		s->jobs[n] = s->jobs[i];
		s->jobs[n].submit_ns = (s->jobs[i].submit_ns - begin_s) * GP_S;
		n++;
	}
	s->before = s->njobs - n;
	s->njobs = n;
}

int gp_sacct_parse(const char *text, const char *filename, const int64_t *begin_s, struct gp_sacct *ret,
		   struct gp_diag *diag)
{
	struct gp_sacct s = { 0 };
	struct reader *rd = calloc(1, sizeof(*rd));
	int r = rd ? 0 : -ENOMEM;

	diag->text[0] = '\0';
	if (rd) {
		rd->at = (struct gp_place){ .file = filename, .diag = diag };
		rd->ret = &s;
		r = read_lines(rd, gp_text_begin(text));
	}
	free(rd);
	if (r < 0) {
		free(s.jobs);
		return r;
	}
	qsort(s.jobs, s.njobs, sizeof(*s.jobs), earlier);
	count_from(&s, begin_s ? (uint64_t)*begin_s : s.jobs[0].submit_ns);
	*ret = s;
	return 0;
}
