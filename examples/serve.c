/* SPDX-License-Identifier: MIT */
/*
 * A server that says when a request comes: offline work leaves the GPU while the request is prepared, and
 * goes on when it is answered.  A request is a line on a connection to 127.0.0.1, and so is its answer.
 *
 *   cc serve.c -o serve $(pkg-config --cflags --libs gpreempt)
 *   gpreempt run --online -- ./serve 8000
 */
#include <arpa/inet.h>
#include <gpreempt/gpreempt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Here a model would run, and its result be waited for; this one takes 10 ms and counts letters. */
static size_t infer(const char *text)
{
	nanosleep(&(const struct timespec){ .tv_nsec = 10000000 }, NULL);
	return strlen(text);
}

/* Hints are one message each, and nobody waits for them. One that is lost costs time, and never the answer.
 */
static void serve(struct gp_ctx *ctx, int connection)
{
	FILE *in = fdopen(connection, "r");
	char line[256];

	while (in && fgets(line, sizeof(line), in)) {
		if (ctx)
			(void)gp_hint_begin(ctx, NULL);
		line[strcspn(line, "\n")] = '\0';
		dprintf(connection, "%zu\n", infer(line));
		if (ctx)
			(void)gp_hint_end(ctx, NULL);
	}
	if (in)
		fclose(in);
}

/* 0: it is none. */
static uint16_t port_of(const char *text)
{
	char *end;
	long port = strtol(text, &end, 10);

	return *end || port < 1 || port > 65535 ? 0 : (uint16_t)port;
}

static int listen_at(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
	char why[256] = "";
	const struct gp_open_opts opts = { .size = sizeof(opts), .errmsg = why, .errmsg_size = sizeof(why) };
	struct gp_ctx *ctx = NULL;
	uint16_t port = port_of(argc > 1 ? argv[1] : "8000");
	int fd, connection;

	if (!port) {
		fprintf(stderr, "serve: \"%s\" is no port from 1 to 65535\n", argv[1]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* who asked may go before the answer comes */
	fd = listen_at(port);
	if (fd < 0) {
		perror("serve");
		return 1;
	}
	if (gp_ctx_open(&opts, &ctx) < 0)
		fprintf(stderr, "serve: no hints: %s\n", why); /* it serves all the same */
	puts("ready");
	fflush(stdout);
	while ((connection = accept(fd, NULL, NULL)) >= 0)
		serve(ctx, connection);
	gp_ctx_close(ctx);
	return 0;
}
