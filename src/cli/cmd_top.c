// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/client_text.h"
#include "cli/clock.h"
#include "cli/device_stats.h"
#include "cli/queue_text.h"
#include "cli/signals.h"
#include "cli/top_act.h"
#include "cli/top_screen.h"
#include "ini/words.h"
#include "study/json.h"

static const char usage[] =
	"usage: gpreempt top [options]\n"
	"\n"
	"Shows the devices and clients, what is done on them and how long it takes, again every second,\n"
	"until q. Keys suspend, resume and change the class of a client, and choose a policy; what is\n"
	"suspended here runs again when top ends.\n"
	"\n"
	"  --interval TIME    how often it looks (1s)\n"
	"  --once             print what is seen after one interval, and end\n"
	"  --socket PATH      gpreemptd's\n"
	"  --backend sim      a simulated machine instead, which ends with this call\n"
	"  --json             with --once: as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt top\n"
	"  gpreempt top --once\n"
	"  gpreempt top --once --json --interval 10s\n";

#define KEYS "q quit  ? keys  s suspend  r resume  c class  p policy  arrows: client, device"
#define USUAL_NS GP_S
#define SPARKS 60 /* of --once */
#define DEAF 100  /* so often in a row there is something to read, and nothing comes: the terminal is gone */

/* In as many columns as top needs at least. */
static const char help[] = "\n"
			   "up, down, j, k  choose a client;\n"
			   "                page keys, Home, End too\n"
			   "left, right     choose a device\n"
			   "s  suspend the client, until r or the\n"
			   "   end of top\n"
			   "r  resume it, whoever suspended it\n"
			   "c  make it online, or offline\n"
			   "p  choose the device's policy\n"
			   "q  quit\n"
			   "\n"
			   "any key: back";

enum mode { BROWSES, ASKS, TAKES_POLICY, HELPS };

struct live {
	const struct gp_options *o;
	struct gp_ctx *ctx; /* NULL: there is no gpreemptd */
	struct gp_top *top;
	struct gp_top_view view;
	struct gp_top_line *lines;
	size_t room; /* lines */
	enum mode mode;
	int key;                       /* that the question is about */
	struct gp_client_info subject; /* and who */
	uint32_t subject_device;
	char typed[GP_NAME_LEN], policies[GP_TOP_SENTENCE];
	char status[GP_TOP_SENTENCE], prompt[GP_TOP_SENTENCE], clock[16];
	int holds; /* something was suspended here */
	int ends;
};

__attribute__((format(printf, 3, 4))) static void tell(struct live *l, int is_wrong, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->status, sizeof(l->status), format, args);
	va_end(args);
	l->view.status_wrong = is_wrong;
}

/* Everything that was held over it runs again. An open question was about its clients and devices: the next
 * one's may have their numbers. */
static void lose(struct live *l, const char *why)
{
	tell(l, 1, "%s", why);
	gp_ctx_close(l->ctx);
	l->ctx = NULL;
	l->holds = 0;
	l->mode = BROWSES;
}

static void set_rights(struct live *l)
{
	uint32_t rights;

	l->view.rights = "";
	if (l->ctx && gp_ctx_rights(l->ctx, &rights) == 0 && !(rights & GP_RIGHT_OTHERS))
		l->view.rights = "read-only but for your own";
}

/* Where there is a gpreemptd now. */
static void find_daemon(struct live *l)
{
	struct gp_ctx *ctx;
	char why[GP_WHY];
	uint32_t rights;
	int r = gp_machine_try(l->o, why, &ctx);

	if (r < 0) {
		if (!l->status[0])
			tell(l, 1, "%s", why);
		return;
	}
	if (l->ctx && gp_ctx_rights(ctx, &rights) < 0) {
		gp_ctx_close(ctx); /* the same as what is there: files alone */
		return;
	}
	gp_ctx_close(l->ctx);
	l->ctx = ctx;
	gp_top_forget(l->top);
	gp_top_events_open(l->top, ctx, 1);
	if (gp_ctx_notice(ctx)[0])
		tell(l, 1, "%s", gp_ctx_notice(ctx));
	else
		tell(l, 0, "gpreemptd is here");
}

static void look(struct live *l)
{
	char why[GP_WHY];

	if (!l->ctx || !l->top->has_daemon)
		find_daemon(l);
	if (l->ctx && gp_top_sample(l->top, l->ctx, gp_now_ns()) < 0) {
		snprintf(why, sizeof(why), "%s", gp_ctx_errmsg(l->ctx));
		lose(l, why);
	}
	if (l->ctx)
		gp_top_events_take(l->top, l->ctx);
	set_rights(l);
}

static void show_clock(struct live *l)
{
	time_t seconds = (time_t)(gp_wall_ns() / GP_S);
	struct tm tm;

	strftime(l->clock, sizeof(l->clock), "%H:%M:%S", localtime_r(&seconds, &tm));
}

static int draw(struct live *l)
{
	struct gp_top_view *v = &l->view;

	gp_top_screen_size(&v->width, &v->height);
	v->width = v->width < GP_TOP_WIDEST ? v->width : GP_TOP_WIDEST;
	if (v->height > l->room) {
		free(l->lines);
		l->lines = calloc(v->height, sizeof(*l->lines));
		l->room = l->lines ? v->height : 0;
	}
	if (!l->lines)
		return -ENOMEM;
	show_clock(l);
	v->slot = gp_wall_ns() / l->top->slot_ns;
	v->status = l->mode == ASKS || l->mode == TAKES_POLICY ? l->prompt : l->status;
	v->help = l->mode == HELPS ? help : NULL;
	gp_top_settle(l->top, v);
	gp_top_draw(l->top, v, l->lines);
	gp_top_screen_draw(l->lines, v->height);
	return 0;
}

/* The other class, as it would be after the key. */
static uint32_t other_class(const struct gp_client_info *c)
{
	return c->client_class == GP_CLASS_ONLINE ? GP_CLASS_OFFLINE : GP_CLASS_ONLINE;
}

static void ask(struct live *l, int key, const struct gp_client_info *c)
{
	char who[GP_TOP_WHO];
	size_t n = gp_top_queues_of(l->top, c);

	if (key == 's')
		snprintf(l->prompt, sizeof(l->prompt),
			 "Suspend %s, %zu queue%s, until r or the end of top? y/n", gp_top_who(c, who), n,
			 n == 1 ? "" : "s");
	else
		snprintf(l->prompt, sizeof(l->prompt), "Make %s %s? y/n", gp_top_who(c, who),
			 gp_class_text(other_class(c)));
	l->mode = ASKS;
	l->key = key;
	l->subject = *c;
}

static void do_with_client(struct live *l, int key, const struct gp_client_info *c)
{
	char text[GP_TOP_SENTENCE] = "";
	int r;

	if (key == 's')
		r = gp_top_suspend(l->top, l->ctx, c, text);
	else if (key == 'r')
		r = gp_top_resume(l->top, l->ctx, c, text);
	else
		r = gp_top_set_class(l->ctx, c, other_class(c), text);
	l->holds |= key == 's' && r == 0;
	tell(l, r < 0, "%s", text);
	look(l);
}

static void take_client_key(struct live *l, int key)
{
	const struct gp_client_info *c = gp_top_chosen(l->top, &l->view);
	char text[GP_TOP_SENTENCE];

	if (!l->ctx)
		return; /* the status says why */
	if (!c)
		tell(l, 1, "there is no client");
	else if (gp_top_may(l->ctx, c, text) < 0)
		tell(l, 1, "%s", text);
	else if (key == 'r' || (key == 's' && !gp_top_queues_of(l->top, c))) /* it says that there is none */
		do_with_client(l, key, c);
	else
		ask(l, key, c);
}

static void show_policy_prompt(struct live *l)
{
	snprintf(l->prompt, sizeof(l->prompt), "Policy of device %" PRIu32 " (%.400s; Tab: the next): %s_",
		 l->subject_device, l->policies, l->typed);
}

static void ask_policy(struct live *l)
{
	char text[GP_TOP_SENTENCE];

	if (!l->ctx)
		return;
	if (!l->top->list.ndevices) {
		tell(l, 1, "there is no device");
	} else if (gp_top_may(l->ctx, NULL, text) < 0) {
		tell(l, 1, "%s", text);
	} else {
		l->mode = TAKES_POLICY;
		l->subject_device = l->view.device;
		l->typed[0] = '\0';
		gp_top_policies(l->ctx, l->subject_device, l->policies);
		show_policy_prompt(l);
	}
}

static void type_next_policy(struct live *l)
{
	char first[GP_NAME_LEN] = "", word[GP_NAME_LEN];
	const char *list = l->policies;
	int is_next = 0;

	while (gp_word_next(&list, word, sizeof(word))) {
		if (!first[0])
			strcpy(first, word);
		if (is_next) {
			strcpy(l->typed, word);
			return;
		}
		is_next = !strcmp(word, l->typed);
	}
	strcpy(l->typed, first);
}

static void take_policy_key(struct live *l, int key)
{
	char text[GP_TOP_SENTENCE] = "";
	size_t len = strlen(l->typed);
	int r;

	if (key == '\t') {
		type_next_policy(l);
	} else if (key == GP_KEY_BACKSPACE && len) {
		l->typed[len - 1] = '\0';
	} else if (key > ' ' && key < 0x7f && len + 1 < sizeof(l->typed)) {
		l->typed[len] = (char)key;
		l->typed[len + 1] = '\0';
	} else if (key == GP_KEY_ESCAPE || (key == '\n' && !len)) {
		l->mode = BROWSES;
	} else if (key == '\n' && l->ctx) {
		l->mode = BROWSES;
		r = gp_top_set_policy(l->ctx, l->subject_device, l->typed, text);
		tell(l, r < 0, "%s", text);
		look(l);
	}
	show_policy_prompt(l);
}

static void take_answer(struct live *l, int key)
{
	l->mode = BROWSES;
	if ((key == 'y' || key == 'Y') && l->ctx)
		do_with_client(l, l->key, &l->subject);
	else if (l->ctx)
		tell(l, 0, "nothing was done");
}

static void browse(struct live *l, int key)
{
	int page = (int)l->view.height / 2;

	if (l->ctx && l->top->has_daemon)
		tell(l, 0, "%s", ""); /* it was read */
	switch (key) {
	case 'q':
	case 'Q':
		l->ends = 1;
		return;
	case 's':
	case 'r':
	case 'c':
		take_client_key(l, key);
		return;
	case 'p':
		ask_policy(l);
		return;
	case '?':
	case 'h':
		l->mode = HELPS;
		return;
	case GP_KEY_LEFT:
	case GP_KEY_RIGHT:
		gp_top_move_device(l->top, &l->view, key == GP_KEY_LEFT ? -1 : 1);
		return;
	case GP_KEY_HOME:
	case GP_KEY_END:
		gp_top_move(l->top, &l->view, key == GP_KEY_HOME ? -INT32_MAX : INT32_MAX);
		return;
	case GP_KEY_PAGE_UP:
	case GP_KEY_PAGE_DOWN:
		gp_top_move(l->top, &l->view, key == GP_KEY_PAGE_UP ? -page : page);
		return;
	case GP_KEY_UP:
	case GP_KEY_DOWN:
	case 'k':
	case 'j':
		gp_top_move(l->top, &l->view, key == GP_KEY_UP || key == 'k' ? -1 : 1);
		return;
	default:
		return;
	}
}

/* How many keys there were. */
static size_t take_keys(struct live *l)
{
	size_t n = 0;
	int key;

	while (!l->ends && (key = gp_top_screen_key()) != GP_KEY_NONE) {
		n++;
		if (key == GP_KEY_REDRAW)
			continue; /* what is drawn next is all of it, and of the size that there is */
		if (l->mode == HELPS)
			l->mode = BROWSES;
		else if (l->mode == ASKS)
			take_answer(l, key);
		else if (l->mode == TAKES_POLICY)
			take_policy_key(l, key);
		else
			browse(l, key);
	}
	return n;
}

/* Until q, a signal, or the end of the terminal. -errno: there is no memory. */
static int serve(struct live *l, int signals)
{
	uint64_t next_ns = gp_now_ns(), now;
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };
	int deaf = 0;

	while (!l->ends) {
		now = gp_now_ns();
		if (now >= next_ns) {
			look(l);
			next_ns = now + l->top->slot_ns;
		}
		if (draw(l) < 0)
			return -ENOMEM;
		fds[0].revents = fds[1].revents = 0;
		now = gp_now_ns();
		(void)poll(fds, 2, next_ns > now ? (int)((next_ns - now) / GP_MS) + 1 : 0);
		deaf = take_keys(l) || !(fds[0].revents & POLLIN) ? 0 : deaf + 1;
		if (fds[1].revents || fds[0].revents & (POLLHUP | POLLERR | POLLNVAL) || deaf > DEAF)
			return 0;
	}
	return 0;
}

static int fail_screen(int r)
{
	const char *term = getenv("TERM");

	if (r == -ENOTTY)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "top: this is no terminal; --once prints what is seen once");
	return gp_fail(
		GP_EXIT_FAILED,
		"top: no terminal \"%s\" is known here that can be drawn on: set TERM to another, as vt100, or use --once",
		term ? term : "");
}

/* What was suspended here may have been resumed since, or have gone. */
static int holds_still(const struct live *l)
{
	size_t n = 0;

	for (size_t i = 0; l->holds && i < l->top->list.nqueues; i++)
		n += l->top->list.queues[i].held != 0;
	return n != 0;
}

static int run_live(struct live *l)
{
	int r, signals = gp_signals_fd();

	r = signals < 0 ? signals : gp_top_screen_open();
	if (r == 0) {
		gp_top_events_open(l->top, l->ctx, 1);
		tell(l, gp_ctx_notice(l->ctx)[0], "%s", gp_ctx_notice(l->ctx));
		r = serve(l, signals);
		gp_top_screen_close();
		if (holds_still(l))
			puts("What was suspended here runs again.");
	} else if (signals >= 0) {
		r = fail_screen(r);
	}
	if (signals >= 0)
		close(signals);
	return r < 0 ? gp_fail(GP_EXIT_FAILED, "top: %s", gp_strerror(r)) : r;
}

static void print_once(const struct gp_top *t)
{
	struct gp_columns table;

	if (!t->list.ndevices) {
		puts(GP_NO_DEVICES);
	} else {
		gp_top_devices_table(&table, t, gp_wall_ns() / t->slot_ns, SPARKS, gp_top_has_unicode());
		gp_columns_print(&table, stdout);
	}
	putchar('\n');
	if (!t->nclients) {
		puts("no clients");
	} else {
		gp_clients_table(&table, &t->list, t->clients, t->nclients, 0);
		gp_columns_print(&table, stdout);
	}
}

static struct json_object *known(uint64_t value)
{
	return value == GP_TOP_UNKNOWN ? NULL : json_object_new_uint64(value);
}

static struct json_object *device_json(const struct gp_top *t, const struct gp_device_info *info)
{
	const struct gp_top_device *d = gp_top_device(t, info->device);
	struct json_object *o = gp_stats_all_json(info, &d->stats), *latencies = json_object_new_array();
	uint64_t slot = gp_wall_ns() / t->slot_ns;

	for (uint64_t i = SPARKS; i--;)
		json_object_array_add(latencies, known(gp_top_worst(&d->latency, slot - i)));
	gp_json_add_double(o, "preemptions_per_second",
			   d->rate_milli == GP_TOP_UNKNOWN ? NAN : (double)d->rate_milli / 1000);
	json_object_object_add(o, "preempt_p99_ns", known(gp_top_p99(d)));
	json_object_object_add(o, "offline_share_permille", known(gp_top_offline_share(t, info->device)));
	json_object_object_add(o, "longest_stops_ns", latencies);
	return o;
}

static void print_json(const struct gp_top *t)
{
	struct json_object *o = json_object_new_object(), *devices = json_object_new_array();

	for (size_t i = 0; i < t->list.ndevices; i++) {
		const struct gp_top_device *d = gp_top_device(t, t->list.devices[i].device);

		if (d && d->has_stats) /* else it went while it was asked about */
			json_object_array_add(devices, device_json(t, &t->list.devices[i]));
	}
	gp_json_add_text(o, "schema", "gpreempt-top-1");
	gp_json_add_int(o, "interval_ns", t->slot_ns);
	json_object_object_add(o, "devices", devices);
	json_object_object_add(o, "clients", gp_clients_json(&t->list, t->clients, t->nclients));
	gp_json_print(o);
}

/* A rate needs two looks. */
static int run_once(const struct live *l)
{
	struct gp_top *t = l->top;
	const struct timespec interval = { .tv_sec = (time_t)(t->slot_ns / GP_S),
					   .tv_nsec = (long)(t->slot_ns % GP_S) };
	uint32_t rights;
	int r = gp_ctx_rights(l->ctx, &rights);

	if (r == 0)
		r = gp_top_sample(t, l->ctx, gp_now_ns());
	if (r == 0) {
		(void)nanosleep(&interval, NULL);
		r = gp_top_sample(t, l->ctx, gp_now_ns());
	}
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(l->ctx));
	gp_top_events_open(t, l->ctx, 0);
	gp_top_events_take(t, l->ctx);
	if (l->o->json)
		print_json(t);
	else
		print_once(t);
	return GP_EXIT_OK;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	struct live live = { .o = &opts, .view = { .rights = "", .clock = live.clock, .keys = KEYS } };
	int code = gp_options_parse(verb, argc, argv, 0, 0, &opts);

	if (code < 0 && opts.json && !opts.once)
		code = gp_fail(GP_EXIT_BAD_INPUT, "top: --json is for --once alone");
	if (code < 0)
		code = gp_machine_open(&opts, NULL, &live.ctx);
	if (code >= 0)
		return code;
	live.top = calloc(1, sizeof(*live.top));
	if (!live.top)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	live.top->slot_ns = opts.interval_ns ? opts.interval_ns : USUAL_NS;
	live.top->has_daemon = 1; /* or look() finds that it is not so */
	live.view.unicode = gp_top_has_unicode();
	code = opts.once ? run_once(&live) : run_live(&live);
	gp_top_free(live.top);
	free(live.lines);
	gp_ctx_close(live.ctx);
	return code;
}

const struct gp_verb gp_verb_top = {
	.name = "top",
	.summary = "devices and clients, live, and keys to change them",
	.usage = usage,
	.options = "interval once backend socket json",
	.run = run,
};
