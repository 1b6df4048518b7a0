// SPDX-License-Identifier: MIT
/*
 * gpreempt-metrics MODE WHERE SOCKET WHO: what `gpreempt metrics` becomes, which has read its options: so the
 * program that everybody uses needs no HTTP library.  MODE is once, listen or unix; SOCKET is gpreemptd's, or
 * empty; WHO is classes or clients.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/collect.h"
#include "metrics/door.h"
#include "metrics/serve.h"
#include "metrics/text.h"

#define FAILED 1
#define BAD_INPUT 2

static int complain(int code, const char *text)
{
	fprintf(stderr, "gpreempt: metrics: %s\n", text);
	return code;
}

/* What there is, whether gpreemptd answers or not: who collects it wants to know that too. */
static int print_once(struct gp_source *source, int per_client)
{
	struct gp_snapshot snapshot;
	size_t size;
	char *text;
	int is_up, is_whole;

	gp_collect(source, &snapshot);
	text = gp_metrics_text(&snapshot, per_client, &size);
	is_up = snapshot.is_up;
	gp_snapshot_free(&snapshot);
	gp_source_close(source);
	if (!text)
		return complain(FAILED, strerror(ENOMEM));
	is_whole = fwrite(text, 1, size, stdout) == size && fflush(stdout) == 0;
	free(text);
	if (!is_whole)
		return complain(FAILED, strerror(errno));
	return is_up ? 0 : complain(FAILED, source->why);
}

static int serve(struct gp_door *door, struct gp_source *source, int per_client)
{
	struct gp_serving *serving;
	sigset_t ends;
	int r, number;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL); /* before there is a thread: it has them blocked too */
	signal(SIGPIPE, SIG_IGN);
	r = gp_serve_start(door->fd, source, per_client, &serving);
	if (r == 0) {
		printf("Metrics at %s; Ctrl-C ends it.\n", door->name);
		fflush(stdout);
		(void)sigwait(&ends, &number); /* cannot fail for these */
		gp_serve_stop(serving);
		gp_source_close(source);
	}
	gp_door_remove(door);
	return r < 0 ? complain(FAILED, r == -EIO ? "libmicrohttpd cannot serve here" : strerror(-r)) : 0;
}

int main(int argc, char **argv)
{
	struct gp_source source = { 0 };
	struct gp_door door;
	int per_client, r;

	if (argc != 5)
		return complain(BAD_INPUT, "it is started by gpreempt metrics");
	source.socket = *argv[3] ? argv[3] : NULL;
	per_client = !strcmp(argv[4], "clients");
	if (!strcmp(argv[1], "once"))
		return print_once(&source, per_client);
	r = !strcmp(argv[1], "unix") ? gp_door_unix(&door, argv[2]) : gp_door_listen(&door, argv[2]);
	if (r < 0)
		return complain(r == -EINVAL ? BAD_INPUT : FAILED, door.name);
	return serve(&door, &source, per_client);
}
