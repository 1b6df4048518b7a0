// SPDX-License-Identifier: MIT
#include "cli/targets.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine_list.h"
#include "cli/names.h"
#include "cli/place.h"
#include "discover/discover.h"
#include "base/units.h"

#define WORD 64
#define HINT 256
#define MOST_HINTS 8

/* What is being read: the list it must be in, and where it goes. */
struct reader {
	const struct gp_machine_list *list; /* by owner and number */
	struct gp_targets *to;
	size_t room;
	char place[GP_PLACE]; /* whose pids the words are; empty: the host's, or our own container's */
	const char *note;     /* on the list's pids */
	int on_host;          /* both are the same there */
};

/* What the command line and standard input name, as it was written. */
struct words {
	char **items;
	size_t n, room;
};

static int by_name(const void *a, const void *b)
{
	const struct gp_queue_info *x = a, *y = b;
	uint32_t owner = gp_queue_owner(x), other = gp_queue_owner(y);

	if (owner != other)
		return owner < other ? -1 : 1;
	owner = gp_queue_number(x);
	other = gp_queue_number(y);
	return owner < other ? -1 : owner > other;
}

static int is_before(const struct gp_queue_info *q, uint64_t owner, uint32_t number)
{
	uint32_t own = gp_queue_owner(q);

	return own != owner ? own < owner : gp_queue_number(q) < number;
}

/* Where the first queue is, or would be, that is not before these. */
static size_t place_of(const struct gp_machine_list *l, uint64_t owner, uint32_t number)
{
	size_t low = 0, high = l->nqueues;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (is_before(&l->queues[mid], owner, number))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first queue of a process, and how many it has. */
static size_t queues_of(const struct gp_machine_list *l, uint32_t pid, const struct gp_queue_info **ret_first)
{
	size_t first = place_of(l, pid, 0);

	*ret_first = &l->queues[first];
	return place_of(l, (uint64_t)pid + 1, 0) - first;
}

static int add(struct reader *rd, const struct gp_queue_info *q, int whole)
{
	struct gp_targets *t = rd->to;

	if (t->n == rd->room) {
		size_t room = rd->room ? 2 * rd->room : 64;
		struct gp_target *more = realloc(t->items, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->items = more;
		rd->room = room;
	}
	t->items[t->n++] = (struct gp_target){ .queue = q->queue,
					       .pid = gp_queue_owner(q),
					       .queue_id = gp_queue_number(q),
					       .was = q->held                        ? GP_WAS_HELD
						      : q->state == GP_QUEUE_RUNNING ? GP_WAS_RUNNING
										     : GP_WAS_WAITING,
					       .whole = whole,
					       .simulated = gp_queue_is_simulated(rd->list, q) };
	return 0;
}

static void name_known(const struct gp_queue_info *first, size_t n, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n && i < 8 && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%" PRIu32, i ? ", " : "",
					 gp_queue_number(&first[i]));
	if (n > 8 && used < size)
		snprintf(text + used, size - used, ", ...");
}

/* The next process after the queue at *at that is pid inside, there or further in; NULL: there is none. */
static const struct gp_queue_info *next_inner(const struct reader *rd, uint32_t pid, enum gp_pid_where least,
					      size_t *at)
{
	const struct gp_queue_info *queues = rd->list->queues;

	for (size_t i = *at; i < rd->list->nqueues; i++) {
		uint32_t owner = gp_queue_owner(&queues[i]);

		if ((i && gp_queue_owner(&queues[i - 1]) == owner) ||
		    (rd->place[0] && strcmp(queues[i].place, rd->place) != 0) ||
		    gp_proc_pid_where(NULL, owner, pid) < least)
			continue;
		*at = i + 1;
		return &queues[i];
	}
	return NULL;
}

/* Whom else a pid means that was read inside a container; of the first few, since each looks at all. */
static const char *hint(const struct reader *rd, uint32_t pid, char text[HINT])
{
	const struct gp_queue_info *q;
	size_t at = 0;

	text[0] = '\0';
	if (rd->place[0] || rd->to->wrong > MOST_HINTS || !gp_sees_host_pids())
		return text;
	while ((q = next_inner(rd, pid, GP_PID_BETWEEN, &at)))
		if (gp_queue_owner(q) != pid)
			gp_place_hint(pid, gp_queue_owner(q), q->place, text, HINT);
	return text;
}

static int no_queues(struct reader *rd, const char *word, uint32_t pid)
{
	char also[HINT];

	rd->to->wrong++;
	gp_fail(0, "%s: no process %" PRIu32 " with GPU queues; see gpreempt list%s%s", word, pid, rd->note,
		hint(rd, pid, also));
	return 0;
}

static int take_one(struct reader *rd, const char *word, uint32_t pid, uint32_t id)
{
	const struct gp_queue_info *first;
	size_t n = queues_of(rd->list, pid, &first);
	size_t i = place_of(rd->list, pid, id) - (size_t)(first - rd->list->queues);
	char known[128];

	for (; i < n && gp_queue_number(&first[i]) == id; i++)
		if (first[i].known & GP_KNOWN_QUEUE_ID || gp_queue_is_nobodys(&first[i]))
			return add(rd, &first[i], 0);
	if (!n)
		return no_queues(rd, word, pid);
	rd->to->wrong++;
	name_known(first, n, known, sizeof(known));
	gp_fail(0, "%s: process %" PRIu32 " has no queue %" PRIu32 "; it has %s", word, pid, id, known);
	return 0;
}

static int take_whole(struct reader *rd, const char *word, uint32_t pid)
{
	const struct gp_queue_info *first;
	size_t n = queues_of(rd->list, pid, &first);
	int r = 0;

	if (!n)
		return no_queues(rd, word, pid);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add(rd, &first[i], 1);
	return r;
}

/* The first that is pid inside the container that was named, and whether there is another: who is that in its
 * own pid namespace goes before who is it in one around. */
static const struct gp_queue_info *find_inner(const struct reader *rd, uint32_t pid, bool *ret_another)
{
	const struct gp_queue_info *q = NULL;
	size_t at = 0;

	*ret_another = false;
	for (enum gp_pid_where least = GP_PID_OWN; !q && least >= GP_PID_BETWEEN; least--) {
		at = 0;
		q = next_inner(rd, pid, least, &at);
		*ret_another = q && next_inner(rd, pid, least, &at);
	}
	return q;
}

/* The host's pid of what is one inside the container that was named. 0: there is none, which was said. */
static int take_inner(struct reader *rd, const char *word, uint64_t *pid)
{
	const struct gp_queue_info *q;
	bool another = false;

	if (!rd->place[0])
		return 1;
	q = gp_sees_host_pids() ? find_inner(rd, (uint32_t)*pid, &another) : NULL;
	if (q && !another) {
		*pid = gp_queue_owner(q);
		return 1;
	}
	rd->to->wrong++;
	gp_fail(0, "%s: %s process %" PRIu64 " with GPU queues in that container", word,
		another ? "there is more than one" : "there is no", *pid);
	return 0;
}

/*
 * Whoever is in a container reads pids there, and in lists the host's: both will do, unless each is another
 * process.  0: then that was said.
 */
static int take_local(struct reader *rd, const char *word, uint64_t *pid)
{
	const struct gp_queue_info *local = NULL, *listed;
	size_t n;

	if (rd->on_host || rd->place[0])
		return 1;
	n = queues_of(rd->list, (uint32_t)*pid, &listed);
	for (size_t i = 0; i < rd->list->nqueues && !local; i++)
		if (rd->list->queues[i].local_pid == *pid)
			local = &rd->list->queues[i];
	if (!local || gp_queue_owner(local) == *pid)
		return 1;
	if (!n) {
		*pid = gp_queue_owner(local);
		return 1;
	}
	rd->to->wrong++;
	gp_fail(0,
		"%s: process %" PRIu64 " of this container is %" PRIu32 " on the host, where %" PRIu64
		" is another; write %" PRIu32 " for the first",
		word, *pid, gp_queue_owner(local), *pid, gp_queue_owner(local));
	return 0;
}

/* "4711" or "4711:1"; 0: neither, which was said. */
static int parse_word(const char *word, uint64_t *pid, uint64_t *id)
{
	const char *colon = strchr(word, ':');
	char first[WORD];

	*id = 0;
	snprintf(first, sizeof(first), "%.*s", colon ? (int)(colon - word) : WORD - 1, word);
	if (gp_count_parse(first, pid) == 0 && *pid && *pid <= INT32_MAX &&
	    (!colon || (gp_count_parse(colon + 1, id) == 0 && *id <= UINT32_MAX)))
		return 1;
	gp_fail(0, "\"%s\" is no queue; write PID or PID:QUEUE, as gpreempt list has them", word);
	return 0;
}

static int take_word(struct reader *rd, const char *word)
{
	const char *colon = strchr(word, ':');
	uint64_t pid, id;

	if (!parse_word(word, &pid, &id) || !take_inner(rd, word, &pid) || !take_local(rd, word, &pid))
		return 0;
	return colon ? take_one(rd, word, (uint32_t)pid, (uint32_t)id) : take_whole(rd, word, (uint32_t)pid);
}

/* The container that was named; its queues, if no pids were. -1 to go on, else the exit code. */
static int take_container(struct reader *rd, const char *container, int all)
{
	const struct gp_machine_list *l = rd->list;
	int code = gp_place_choose(container, gp_places_of(l->queues, l->nqueues), rd->place);

	for (size_t i = 0; code < 0 && all && i < l->nqueues; i++)
		if (!strcmp(l->queues[i].place, rd->place) && add(rd, &l->queues[i], 1) < 0)
			code = gp_fail(GP_EXIT_FAILED, "out of memory");
	return code;
}

static int compare_targets(const void *a, const void *b)
{
	const struct gp_target *x = a, *y = b;

	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return y->whole - x->whole;
}

/* Each queue once; who names it twice is told. */
static void drop_doubles(struct gp_targets *t)
{
	size_t kept = 0;

	if (t->n)
		qsort(t->items, t->n, sizeof(*t->items), compare_targets);
	for (size_t i = 0; i < t->n; i++) {
		if (!kept || t->items[kept - 1].queue != t->items[i].queue) {
			t->items[kept++] = t->items[i];
			continue;
		}
		t->wrong++;
		gp_fail(0, "%" PRIu32 ":%" PRIu32 ": named twice; once is enough", t->items[i].pid,
			t->items[i].queue_id);
	}
	t->n = kept;
}

static int whole_first(const void *a, const void *b)
{
	const struct gp_target *x = a, *y = b;

	if (x->whole != y->whole)
		return y->whole - x->whole;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->queue_id < y->queue_id ? -1 : x->queue_id > y->queue_id;
}

/* -1 to go on, else the exit code. */
static int read_targets(const struct gp_options *opts, const struct words *w, struct reader *rd)
{
	int r = 0, code = -1;

	if (opts->container)
		code = take_container(rd, opts->container, !opts->argc);
	if (code >= 0)
		return code;
	for (size_t i = 0; i < w->n && r == 0; i++)
		r = take_word(rd, w->items[i]);
	return r < 0 ? gp_fail(GP_EXIT_FAILED, "out of memory") : -1;
}

static void put_in_order(struct gp_targets *t)
{
	drop_doubles(t);
	if (t->n)
		qsort(t->items, t->n, sizeof(*t->items), whole_first);
	while (t->nwhole < t->n && t->items[t->nwhole].whole)
		t->nwhole++;
	t->simulated = t->n > 0;
	for (size_t i = 0; i < t->n; i++)
		t->simulated &= t->items[i].simulated;
}

static int find(const struct gp_options *opts, const struct words *w, struct gp_ctx *ctx,
		struct gp_targets *ret)
{
	struct gp_machine_list list;
	struct reader rd = {
		.list = &list, .to = ret, .note = gp_pids_note(ctx), .on_host = gp_sees_host_pids()
	};
	int r, code;

	*ret = (struct gp_targets){ 0 };
	r = gp_queue_resume(ctx, NULL, 0, NULL); /* of none: is there somebody who can act? */
	if (r == 0)
		r = gp_machine_list_read(ctx, &list);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", gp_ctx_errmsg(ctx));
	if (list.nqueues)
		qsort(list.queues, list.nqueues, sizeof(*list.queues), by_name);
	code = read_targets(opts, w, &rd);
	put_in_order(ret);
	gp_machine_list_free(&list);
	return code;
}

static void free_targets(struct gp_targets *t)
{
	free(t->items);
	*t = (struct gp_targets){ 0 };
}

static int add_word(struct words *w, const char *word)
{
	if (w->n == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		char **more = realloc(w->items, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		w->items = more;
		w->room = room;
	}
	w->items[w->n] = strdup(word);
	return w->items[w->n] ? (int)w->n++ : -ENOMEM;
}

/* All of them, also those that "-" stands for. */
static int read_words(const struct gp_options *opts, struct words *w)
{
	char word[WORD];
	int r = 0;

	for (int i = 0; i < opts->argc && r >= 0; i++) {
		if (strcmp(opts->argv[i], "-") != 0)
			r = add_word(w, opts->argv[i]);
		else
			while (r >= 0 && scanf("%63s", word) == 1)
				r = add_word(w, word);
	}
	return r;
}

static void free_words(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->items[i]);
	free(w->items);
}

/* Words that no queue can have are wrong whoever runs. -1 to go on, else the exit code. */
static int check_words(const struct gp_verb *verb, const struct gp_options *opts, struct words *w)
{
	uint64_t pid, id;
	int code = -1;

	if (read_words(opts, w) < 0)
		return gp_fail(GP_EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < w->n; i++)
		if (!parse_word(w->items[i], &pid, &id))
			code = GP_EXIT_BAD_INPUT;
	if (opts->argc && !w->n)
		code = gp_fail(GP_EXIT_FAILED, "%s: no queues: standard input is empty", verb->name);
	return code;
}

static int find_and_do(const struct gp_options *opts, const struct words *w, struct gp_ctx *ctx,
		       gp_targets_fn fn)
{
	struct gp_targets targets;
	int code = find(opts, w, ctx, &targets);

	if (code < 0)
		code = fn(&targets, ctx, opts);
	free_targets(&targets);
	return code;
}

int gp_targets_run(const struct gp_verb *verb, const struct gp_options *opts, gp_targets_fn fn)
{
	struct words words = { 0 };
	struct gp_ctx *ctx;
	int code = check_words(verb, opts, &words);

	if (code < 0)
		code = gp_machine_open(opts, NULL, &ctx);
	if (code < 0) {
		code = find_and_do(opts, &words, ctx, fn);
		gp_ctx_close(ctx);
	}
	free_words(&words);
	return code;
}

static const char *advice(int status)
{
	switch (status) {
	case -EPERM:
	case -EACCES:
		return "only root and group gpreempt may act on other users' queues";
	case -ENOENT:
		return "it has gone";
	case -ENOTSUP:
		return "nobody here can stop it: start its program with gpreempt run";
	case -ETIMEDOUT:
		return "it did not stop in time, and runs on";
	case -ENODATA:
		return "it may not have finished in time, and runs on";
	case -ECANCELED:
		return "somebody resumed it, or its lease ended, before it stood still";
	default:
		return gp_strerror(status);
	}
}

/*
 * What is to be said before the reason.  "Connection timed out" is no word for a queue that did not stop: the
 * reason says it.  So it does where it has the same words.
 */
static const char *error_text(int status, const char *reason)
{
	const char *text = gp_strerror(status);

	return status == -ETIMEDOUT || strstr(reason, text) ? "" : text;
}

#define UNTOUCHED 1

/* What was said of a queue was said of the first that failed; those with the same number failed for the same
 * reason. */
static void complain(struct gp_ctx *ctx, const struct gp_target *items, size_t n, const char *what, int first)
{
	char told[320], how[256];
	const char *why;
	int has_how = 0; /* once is enough */

	snprintf(told, sizeof(told), "%s", gp_ctx_errmsg(ctx));
	why = strncmp(told, "queue ", 6) ? NULL : strstr(told, ": ");
	if (!why) { /* not of one queue: of all */
		gp_fail(0, "%s", told[0] ? told : gp_strerror(first));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		int status = items[i].status, needs_how;
		const char *reason = status == first && status != -ECANCELED ? why + 2 : advice(status);
		const char *error = error_text(status, reason);

		if (status >= 0)
			continue;
		/* By the text: a process that is debugged is -EPERM too, and no group helps. */
		needs_how = !has_how && strstr(reason, "group " GP_GROUP);
		gp_fail(0, "%" PRIu32 ":%" PRIu32 ": cannot be %s: %s%s%s%s%s", items[i].pid,
			items[i].queue_id, what, error, error[0] ? ": " : "", reason, needs_how ? ": " : "",
			needs_how ? gp_rights_advice(ctx, how, sizeof(how)) : "");
		has_how |= needs_how;
	}
}

/* Some of them, in one call. opts NULL: resume. */
static void act(struct gp_target *items, size_t n, struct gp_ctx *ctx, const struct gp_suspend_opts *opts)
{
	uint64_t *queues = calloc(n + 1, sizeof(*queues));
	int32_t *status = calloc(n + 1, sizeof(*status));
	int r = queues && status ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		queues[i] = items[i].queue;
		status[i] = UNTOUCHED;
	}
	if (r == 0 && n)
		r = opts ? gp_queue_suspend(ctx, queues, n, opts, status)
			 : gp_queue_resume(ctx, queues, n, status);
	for (size_t i = 0; i < n; i++)
		items[i].status = status && status[i] != UNTOUCHED ? status[i] : r;
	if (r < 0)
		complain(ctx, items, n, opts ? "suspended" : "resumed", r);
	free(queues);
	free(status);
}

void gp_targets_suspend(struct gp_targets *t, struct gp_ctx *ctx, const struct gp_suspend_opts *opts)
{
	struct gp_suspend_opts whole = *opts;

	whole.flags |= GP_SUSPEND_NEW_QUEUES;
	if (t->nwhole)
		act(t->items, t->nwhole, ctx, &whole);
	if (t->n > t->nwhole)
		act(t->items + t->nwhole, t->n - t->nwhole, ctx, opts);
}

void gp_targets_resume(struct gp_targets *t, struct gp_ctx *ctx)
{
	act(t->items, t->n, ctx, NULL);
}

static const struct gp_queue_info *listed(const struct gp_machine_list *list, uint64_t queue)
{
	for (size_t i = 0; i < list->nqueues; i++)
		if (list->queues[i].queue == queue)
			return &list->queues[i];
	return NULL;
}

int gp_targets_look(struct gp_targets *t, struct gp_ctx *ctx)
{
	struct gp_machine_list list;
	size_t kept = 0;
	int r = gp_machine_list_read(ctx, &list);

	if (r < 0)
		return r;
	for (size_t i = 0; i < t->n; i++) {
		const struct gp_queue_info *q = listed(&list, t->items[i].queue);

		if (t->items[i].status == 0 && q && q->held)
			t->items[kept++] = t->items[i];
		else if (t->items[i].status == 0)
			gp_fail(0, "%" PRIu32 ":%" PRIu32 ": %s", t->items[i].pid, t->items[i].queue_id,
				q ? "runs again: somebody else resumed it" : "has gone");
	}
	t->n = kept;
	gp_machine_list_free(&list);
	return (int)kept;
}

/* What they were, as bits. */
#define ANY ((1u << GP_WAS_HELD) | (1u << GP_WAS_RUNNING) | (1u << GP_WAS_WAITING))

static int counts(const struct gp_target *item, unsigned int were)
{
	return item->status == 0 && were & (1u << item->was);
}

static size_t count_queues(const struct gp_targets *t, unsigned int were)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += counts(&t->items[i], were) != 0;
	return n;
}

size_t gp_targets_done(const struct gp_targets *t)
{
	return count_queues(t, ANY);
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static size_t count_processes(const struct gp_targets *t, unsigned int were)
{
	uint32_t *pids = calloc(t->n + 1, sizeof(*pids));
	size_t n = 0, different = 0;

	for (size_t i = 0; pids && i < t->n; i++)
		if (counts(&t->items[i], were))
			pids[n++] = t->items[i].pid;
	if (n)
		qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		different += !i || pids[i] != pids[i - 1];
	free(pids);
	return different;
}

static size_t describe(const struct gp_targets *t, unsigned int were, char *text, size_t size)
{
	size_t queues = count_queues(t, were), processes = count_processes(t, were);

	snprintf(text, size, "%zu %squeue%s of %zu process%s", queues, t->simulated ? "simulated " : "",
		 queues == 1 ? "" : "s", processes, processes == 1 ? "" : "es");
	return queues;
}

const char *gp_targets_text(const struct gp_targets *t, char *text, size_t size)
{
	(void)describe(t, ANY, text, size);
	return text;
}

size_t gp_targets_that_were(const struct gp_targets *t, enum gp_target_was was, char *text, size_t size)
{
	return describe(t, 1u << was, text, size);
}

void gp_targets_print_json(const struct gp_targets *t, const char *schema, const char *notice)
{
	static const char *const states[] = { "held", "running", "waiting" };
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < t->n; i++) {
		struct json_object *one = json_object_new_object();

		gp_json_add_int(one, "pid", t->items[i].pid);
		gp_json_add_int(one, "queue_id", t->items[i].queue_id);
		gp_json_add_text(one, "was", states[t->items[i].was]);
		json_object_object_add(one, "error",
				       t->items[i].status < 0
					       ? json_object_new_string(gp_strerror(t->items[i].status))
					       : NULL);
		json_object_array_add(list, one);
	}
	gp_json_add_text(o, "schema", schema);
	json_object_object_add(o, "simulated", json_object_new_boolean(t->simulated));
	json_object_object_add(o, "queues", list);
	gp_json_add_int(o, "wrong", t->wrong);
	gp_json_add_text(o, "notice", notice);
	gp_json_print(o);
	fflush(stdout);
}

int gp_targets_exit(const struct gp_targets *t)
{
	return t->wrong || gp_targets_done(t) < t->n ? GP_EXIT_FAILED : GP_EXIT_OK;
}
