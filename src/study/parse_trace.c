// SPDX-License-Identifier: MIT
/*
 * Arrival traces:
 *	gpreempt-trace 1
 *	# SEQ TIME_US CLIENT
 *	0 1500 0
 *	1 1720.5 1
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/parse.h"
#include "base/units.h"
#include "ini/words.h"

#define HEADING "gpreempt-trace 1"
#define MAX_REQUESTS 10000000ull
#define MAX_LINE 128

struct reader {
	struct gp_place at;
	uint64_t clients;
	uint64_t room;
	struct gp_trace trace;
};

static int grow(struct reader *rd)
{
	uint64_t room = rd->room ? rd->room * 2 : 1024;
	uint64_t *times;
	uint32_t *clients;

	if (rd->trace.len < rd->room)
		return 0;
	if (rd->trace.len >= MAX_REQUESTS)
		return gp_complain(&rd->at, "more than %llu requests; use a shorter trace", MAX_REQUESTS);
	times = realloc(rd->trace.time_ns, room * sizeof(*times));
	if (!times)
		return -ENOMEM;
	rd->trace.time_ns = times;
	clients = realloc(rd->trace.client, room * sizeof(*clients));
	if (!clients)
		return -ENOMEM;
	rd->trace.client = clients;
	rd->room = room;
	return 0;
}

static int check_seq(const struct reader *rd, const char *word)
{
	uint64_t want = rd->trace.len, seq;

	if (gp_count_parse(word, &seq) < 0)
		return gp_complain(&rd->at, "\"%.20s\" is not a request's number; write %" PRIu64, word,
				   want);
	if (seq > want && want)
		return gp_complain(&rd->at,
				   "request %" PRIu64 " is missing (found %" PRIu64 " after %" PRIu64
				   "); every request must be there, in order",
				   want, seq, want - 1);
	if (seq > want)
		return gp_complain(&rd->at,
				   "request 0 is missing (the first is %" PRIu64
				   "); every request must be there, in order",
				   seq);
	if (seq < want)
		return gp_complain(&rd->at, "request %" PRIu64 " again; write %" PRIu64, seq, want);
	return 0;
}

static int parse_time(const struct reader *rd, const char *word, uint64_t *ret_ns)
{
	uint64_t last = rd->trace.len ? rd->trace.time_ns[rd->trace.len - 1] : 0;

	if (gp_decimal_parse(word, GP_US, ret_ns) < 0)
		return gp_complain(&rd->at, "\"%.20s\" is not a time; write microseconds, as in: 1500.25",
				   word);
	if (*ret_ns < last)
		return gp_complain(&rd->at,
				   "time goes back to %s us; write %" PRIu64 ".%03" PRIu64 " or more", word,
				   last / GP_US, last % GP_US);
	return 0;
}

static int parse_client(const struct reader *rd, const char *word, uint32_t *ret_client)
{
	uint64_t client;

	if (gp_count_parse(word, &client) < 0 || client >= rd->clients)
		return gp_complain(&rd->at, "\"%.20s\" is not a client; write a number from 0 to %" PRIu64,
				   word, rd->clients - 1);
	*ret_client = (uint32_t)client;
	return 0;
}

static int parse_request(struct reader *rd, const char *line)
{
	char seq[32], time[32], client[32], more[2];
	uint64_t time_ns = 0;
	uint32_t number = 0;
	int r;

	if (!gp_word_next(&line, seq, sizeof(seq)) || !gp_word_next(&line, time, sizeof(time)) ||
	    !gp_word_next(&line, client, sizeof(client)) || gp_word_next(&line, more, sizeof(more)))
		return gp_complain(&rd->at,
				   "not a request; write its number, time in us and client, as in: "
				   "%" PRIu64 " 1500 0",
				   rd->trace.len);
	r = check_seq(rd, seq);
	if (r == 0)
		r = parse_time(rd, time, &time_ns);
	if (r == 0)
		r = parse_client(rd, client, &number);
	if (r == 0)
		r = grow(rd);
	if (r < 0)
		return r;
	rd->trace.time_ns[rd->trace.len] = time_ns;
	rd->trace.client[rd->trace.len++] = number;
	return 0;
}

/* Copies one line without its end, a '\r' and blanks at both ends; moves *text on. */
static int next_line(struct reader *rd, const char **text, char line[MAX_LINE])
{
	const char *begin = *text + strspn(*text, " \t");
	size_t len = strcspn(begin, "\n");

	rd->at.line++;
	*text = begin + len + (begin[len] == '\n');
	line[0] = '\0';
	if (begin[0] == '#')
		return 0;
	while (len && strchr(" \t\r", begin[len - 1]))
		len--;
	if (len >= MAX_LINE)
		return gp_complain(&rd->at,
				   "the line is too long; write a number, a time in us and a client");
	memcpy(line, begin, len);
	line[len] = '\0';
	return 0;
}

static int parse_lines(struct reader *rd, const char *text)
{
	char line[MAX_LINE];
	int r;

	r = next_line(rd, &text, line);
	if (r < 0)
		return r;
	if (strcmp(line, HEADING))
		return gp_complain(&rd->at, "not an arrival trace; the first line must be: " HEADING);
	while (*text) {
		r = next_line(rd, &text, line);
		if (r == 0 && line[0])
			r = parse_request(rd, line);
		if (r < 0)
			return r;
	}
	if (!rd->trace.len)
		return gp_complain(&rd->at, "no request in it; add a line such as: 0 1500 0");
	return 0;
}

int gp_trace_parse(const char *text, const char *filename, uint64_t clients, struct gp_trace *ret,
		   struct gp_diag *diag)
{
	struct reader rd = { .at = { .file = filename, .diag = diag }, .clients = clients };
	int r;

	diag->text[0] = '\0';
	r = parse_lines(&rd, gp_text_begin(text));
	if (r < 0) {
		gp_trace_free(&rd.trace);
		(void)gp_complain(&rd.at, "%s", strerror(-r));
		return r;
	}
	*ret = rd.trace;
	return 0;
}

void gp_trace_free(struct gp_trace *trace)
{
	free(trace->time_ns);
	free(trace->client);
	*trace = (struct gp_trace){ 0 };
}
