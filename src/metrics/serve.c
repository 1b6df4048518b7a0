// SPDX-License-Identifier: MIT
/*
 * One thread, a bounded number of connections, and one question to gpreemptd at a time: whoever scrapes
 * meanwhile has the same answer, and so has who comes within a moment.  What a slow reader has not read is
 * libmicrohttpd's to keep, once for all who have that answer.
 */
#include "metrics/serve.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "metrics/text.h"

#define CONNECTIONS 64u            /* more wait until one of them has ended */
#define IDLE_S 10u                 /* who says and reads nothing for so long is dropped */
#define REQUEST_BYTES (16u * 1024) /* of a connection: a request that is longer is refused */
#define FRESH_NS (GP_S / 5)        /* an answer is used again for so long */

#if MHD_VERSION < 0x00097002
typedef int answer_t; /* as EL8 has it */
#else
typedef enum MHD_Result answer_t;
#endif

struct gp_serving {
	struct MHD_Daemon *http;
	struct gp_source *source;
	int per_client;
	struct MHD_Response *last; /* NULL: none */
	uint64_t last_ns;
	int was_up;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * GP_S + (uint64_t)t.tv_nsec;
}

static struct MHD_Response *respond(void *text, size_t size, enum MHD_ResponseMemoryMode mode,
				    const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(size, text, mode);

	if (!r && mode == MHD_RESPMEM_MUST_FREE)
		free(text);
	if (r)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return r;
}

/* Scrapes do not wait for who has it and does not read it: the line is lost then. */
static int is_stderr_read(void)
{
	struct pollfd to = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&to, 1, 0) == 1 && to.revents & POLLOUT;
}

/* Once for each change: the line is for whoever looks why there is nothing. */
static void say_change(struct gp_serving *s, int is_up)
{
	const int was_up = s->was_up;

	s->was_up = is_up;
	if (is_up == was_up || !is_stderr_read())
		return;
	if (!is_up)
		fprintf(stderr, "gpreempt metrics: gpreempt_up is 0: %s\n", s->source->why);
	else if (was_up == 0)
		fputs("gpreempt metrics: gpreemptd answers\n", stderr);
}

static void renew(struct gp_serving *s)
{
	struct gp_snapshot snapshot;
	size_t size;
	char *text;

	gp_collect(s->source, &snapshot);
	say_change(s, snapshot.is_up);
	text = gp_metrics_text(&snapshot, s->per_client, &size);
	gp_snapshot_free(&snapshot);
	if (s->last)
		MHD_destroy_response(s->last);
	s->last = text ? respond(text, size, MHD_RESPMEM_MUST_FREE, GP_METRICS_TYPE) : NULL;
	s->last_ns = now_ns();
}

static answer_t say_metrics(struct gp_serving *s, struct MHD_Connection *to)
{
	if (!s->last || now_ns() - s->last_ns > FRESH_NS)
		renew(s);
	return s->last ? MHD_queue_response(to, MHD_HTTP_OK, s->last) : MHD_NO;
}

static answer_t say(struct MHD_Connection *to, unsigned int status, const char *text)
{
	struct MHD_Response *r = respond((void *)(uintptr_t)text, strlen(text), MHD_RESPMEM_PERSISTENT,
					 "text/plain; charset=utf-8");
	answer_t done;

	if (!r)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	done = MHD_queue_response(to, status, r);
	MHD_destroy_response(r);
	return done;
}

/* The first call of a request has its headers alone; what it sends besides is not read. */
static answer_t answer(void *serving, struct MHD_Connection *to, const char *url, const char *method,
		       const char *version, const char *data, size_t *size, void **is_known)
{
	(void)version;
	(void)data;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(to, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone are answered here.\n");
	if (!*is_known) {
		*is_known = serving;
		return MHD_YES;
	}
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	if (!strcmp(url, "/metrics"))
		return say_metrics(serving, to);
	if (!strcmp(url, "/"))
		return say(to, MHD_HTTP_OK, "gpreempt: /metrics is for Prometheus; gpreempt-metrics(1).\n");
	return say(to, MHD_HTTP_NOT_FOUND, "There is /metrics here, and nothing else.\n");
}

/* Garbage is answered with an error, which nobody needs to read of. */
static void keep_quiet(void *arg, const char *format, va_list args)
{
	(void)arg;
	(void)format;
	(void)args;
}

int gp_serve_start(int fd, struct gp_source *source, int per_client, struct gp_serving **ret)
{
	struct gp_serving *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->source = source;
	s->per_client = per_client;
	s->was_up = -1;
	s->http = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer, s,
				   MHD_OPTION_EXTERNAL_LOGGER, keep_quiet, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
				   MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				   IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
				   MHD_OPTION_END);
	if (!s->http) {
		free(s);
		close(fd);
		return -EIO;
	}
	*ret = s;
	return 0;
}

void gp_serve_stop(struct gp_serving *s)
{
	MHD_stop_daemon(s->http);
	if (s->last)
		MHD_destroy_response(s->last);
	free(s);
}
