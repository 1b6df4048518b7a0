// SPDX-License-Identifier: MIT
#include "cli/top_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/client_text.h"
#include "cli/device_stats.h"

#define LEAST_WIDTH 40
#define LEAST_HEIGHT 14
#define MARK 2 /* columns before each row: "> " */
#define NAME_SIZE 64
#define LATENCY "LATENCY  "
#define MOST "  most "
#define MOST_STATUS 4   /* lines */
#define USUAL_DEVICES 8 /* of a machine that has many */

/* As much of it as people read: three digits. */
static const char *time_text(uint64_t ns, char text[GP_TIME_TEXT])
{
	uint64_t unit = 1;

	while (ns / unit >= 1000)
		unit *= 10;
	return gp_time_text((ns + unit / 2) / unit * unit, text);
}

/* From 0, for 10 us and less, to 7, for more than half a second. */
static size_t height_of(uint64_t ns)
{
	static const uint64_t bounds[] = { 10 * GP_US, 50 * GP_US, 200 * GP_US, GP_MS,
					   5 * GP_MS,  50 * GP_MS, 500 * GP_MS };
	size_t i = 0;

	while (i < sizeof(bounds) / sizeof(bounds[0]) && ns > bounds[i])
		i++;
	return i;
}

const char *gp_top_sparks(const struct gp_top_latency *l, uint64_t slot, size_t n, int unicode,
			  char text[GP_TOP_TEXT])
{
	static const char ascii[] = "_.-=+*%#";
	size_t used = 0;

	n = n < GP_TOP_SLOTS ? n : GP_TOP_SLOTS;
	for (size_t i = n; i-- && used + 4 < GP_TOP_TEXT;) {
		uint64_t worst = slot >= i ? gp_top_worst(l, slot - i) : GP_TOP_UNKNOWN;

		if (worst == GP_TOP_UNKNOWN)
			text[used++] = ' ';
		else if (!unicode)
			text[used++] = ascii[height_of(worst)];
		else /* U+2581 to U+2588 */
			used += (size_t)sprintf(text + used, "\xe2\x96%c", (char)(0x81 + height_of(worst)));
	}
	text[used] = '\0';
	return text;
}

static uint64_t longest(const struct gp_top_latency *l, uint64_t slot, size_t n)
{
	uint64_t most = GP_TOP_UNKNOWN;

	for (size_t i = 0; i < n && i <= slot; i++) {
		uint64_t one = gp_top_worst(l, slot - i);

		if (one != GP_TOP_UNKNOWN && (most == GP_TOP_UNKNOWN || one > most))
			most = one;
	}
	return most;
}

/* Nothing is known of it: it is not as if nothing had been done. */
static const struct gp_top_device nobody_told = { .rate_milli = GP_TOP_UNKNOWN };

static const struct gp_top_device *told_of(const struct gp_top *t, uint32_t device)
{
	const struct gp_top_device *d = gp_top_device(t, device);

	return d && d->has_stats ? d : &nobody_told;
}

/* A dash is a word: the columns stay, whatever is known. */
static void add_device(struct gp_columns *table, const struct gp_top *t, const struct gp_device_info *info,
		       const char *sparks)
{
	const struct gp_top_device *d = told_of(t, info->device);
	uint64_t share = gp_top_offline_share(t, info->device), p99 = gp_top_p99(d);
	char number[12], name[NAME_SIZE], rate[32] = "-", p99_text[GP_TIME_TEXT] = "-";
	char offline[GP_SHARE_TEXT] = "-", stopped[12] = "-";
	const char *const words[] = { number,  name,     d->has_stats ? d->stats.policy : info->policy,
				      rate,    p99_text, offline,
				      stopped, sparks };

	snprintf(number, sizeof(number), "%" PRIu32, info->device);
	snprintf(name, sizeof(name), "%s%s", info->name, gp_device_is_simulated(info) ? " (simulated)" : "");
	if (d->rate_milli != GP_TOP_UNKNOWN)
		snprintf(rate, sizeof(rate), "%" PRIu64 ".%" PRIu64, d->rate_milli / 1000,
			 d->rate_milli % 1000 / 100);
	if (p99 != GP_TOP_UNKNOWN)
		(void)time_text(p99, p99_text);
	if (share != GP_TOP_UNKNOWN)
		(void)gp_share_text((uint32_t)share, offline);
	if (d->has_stats)
		snprintf(stopped, sizeof(stopped), "%" PRIu32, d->stats.stopped);
	gp_columns_add(table, words);
}

void gp_top_devices_table(struct gp_columns *table, const struct gp_top *t, uint64_t slot, size_t sparks,
			  int unicode)
{
	static const char *const headings[] = { "DEVICE", "NAME",    "POLICY",  "PREEMPT/S",
						"P99",    "OFFLINE", "STOPPED", "LATENCY" };
	char text[GP_TOP_TEXT];

	gp_columns_begin(table, headings, sizeof(headings) / sizeof(headings[0]));
	gp_columns_cut(table, 1, 7);
	for (size_t i = 0; i < t->list.ndevices; i++) {
		const struct gp_top_device *d = gp_top_device(t, t->list.devices[i].device);

		snprintf(text, sizeof(text), "%s", sparks ? "-" : "");
		if (d && longest(&d->latency, slot, sparks) != GP_TOP_UNKNOWN)
			(void)gp_top_sparks(&d->latency, slot, sparks, unicode, text);
		add_device(table, t, &t->list.devices[i], text);
	}
}

static size_t chosen_at(const struct gp_top *t, const struct gp_top_view *v)
{
	size_t i = 0;

	while (i < t->nclients &&
	       (t->clients[i].client != v->client || t->clients[i].device != v->client_device))
		i++;
	return i;
}

const struct gp_client_info *gp_top_chosen(const struct gp_top *t, const struct gp_top_view *v)
{
	size_t at = chosen_at(t, v);

	return at < t->nclients ? &t->clients[at] : NULL;
}

static size_t device_at(const struct gp_top *t, const struct gp_top_view *v)
{
	size_t i = 0;

	while (i < t->list.ndevices && t->list.devices[i].device != v->device)
		i++;
	return i < t->list.ndevices ? i : 0;
}

/* Where what is on the page stands. */
struct places {
	size_t devices, ndevices,
		first_device; /* line of the headings, rows below it, and the first that is seen */
	size_t latency;
	size_t wrong; /* 0: nothing is */
	size_t clients, nclients;
	size_t status;
};

static const char *wrong_with(const struct gp_top *t, const struct gp_top_view *v, char text[GP_REASON_TEXT])
{
	const struct gp_top_device *d = told_of(t, v->device);

	if (!d->has_stats)
		return "";
	return d->stats.reason[0] ? gp_reason_text(&d->stats, text) : d->stats.ejection;
}

/* How much of a text stands in the next line: words, as many as have room. */
static size_t line_of(const char *text, size_t width)
{
	size_t fits = gp_text_fit(text, width), at = fits;

	if (!text[fits])
		return fits;
	while (at && text[at] != ' ')
		at--;
	return at ? at : fits;
}

static const char *next_line(const char *text, size_t width)
{
	text += line_of(text, width);
	return text + (*text == ' ');
}

/* At least one. */
static size_t status_lines(const struct gp_top_view *v)
{
	const char *text = v->status;
	size_t n = 0;

	do
		text = next_line(text, v->width);
	while (++n < MOST_STATUS && *text);
	return n;
}

/* Rows for devices: half of what there is beyond the smallest screen, or all of it if they are as many as
 * usual. */
static size_t device_rows(size_t height)
{
	size_t more = height - LEAST_HEIGHT, half = more / 2 + 1, all = more + 1;

	if (half >= USUAL_DEVICES)
		return half;
	return all < USUAL_DEVICES ? all : USUAL_DEVICES;
}

static struct places lay_out(const struct gp_top *t, const struct gp_top_view *v)
{
	size_t room = device_rows(v->height), chosen = device_at(t, v);
	struct places p = { .devices = 1 };
	char text[GP_REASON_TEXT];

	p.ndevices = t->list.ndevices < room ? t->list.ndevices : room;
	p.first_device = chosen < p.ndevices ? 0 : chosen - p.ndevices + 1;
	p.latency = p.devices + 1 + (p.ndevices ? p.ndevices : 1);
	p.wrong = wrong_with(t, v, text)[0] ? p.latency + 1 : 0;
	p.clients = p.latency + (p.wrong ? 3 : 2);
	p.status = v->height - 1 - status_lines(v);
	p.nclients = p.status - p.clients - 1;
	return p;
}

static int is_too_small(const struct gp_top_view *v)
{
	return v->width < LEAST_WIDTH || v->height < LEAST_HEIGHT;
}

static void choose_client(const struct gp_top *t, struct gp_top_view *v, size_t at)
{
	v->client = t->clients[at].client;
	v->client_device = t->clients[at].device;
}

void gp_top_settle(const struct gp_top *t, struct gp_top_view *v)
{
	size_t at = chosen_at(t, v), rows;

	if (t->list.ndevices)
		v->device = t->list.devices[device_at(t, v)].device;
	if (at == t->nclients)
		at = 0;
	if (t->nclients)
		choose_client(t, v, at);
	if (is_too_small(v))
		return;
	rows = lay_out(t, v).nclients;
	v->first = v->first + rows > t->nclients ? (t->nclients > rows ? t->nclients - rows : 0) : v->first;
	v->first = at < v->first ? at : at >= v->first + rows ? at - rows + 1 : v->first;
}

/* Not beyond the ends. */
static size_t moved(size_t at, size_t n, int places)
{
	if (places < 0)
		return at > (size_t)-places ? at - (size_t)-places : 0;
	return at + (size_t)places < n ? at + (size_t)places : n - 1;
}

void gp_top_move(const struct gp_top *t, struct gp_top_view *v, int lines)
{
	gp_top_settle(t, v);
	if (t->nclients)
		choose_client(t, v, moved(chosen_at(t, v), t->nclients, lines));
	gp_top_settle(t, v);
}

void gp_top_move_device(const struct gp_top *t, struct gp_top_view *v, int places)
{
	if (t->list.ndevices)
		v->device = t->list.devices[moved(device_at(t, v), t->list.ndevices, places)].device;
	gp_top_settle(t, v);
}

__attribute__((format(printf, 3, 4))) static void put(struct gp_top_line *line, enum gp_top_style style,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
	gp_text_clean(line->text);
	line->style = style;
}

/* "2 clients"; of what nobody told, no number. */
static const char *count_text(int is_known, size_t n, const char *what, char text[32])
{
	if (is_known)
		snprintf(text, 32, "%zu %s%s", n, what, n == 1 ? "" : "s");
	else
		snprintf(text, 32, "- %ss", what);
	return text;
}

/* What one may do here is always whole; then, where there is room: the time, the counts, the interval. */
static void draw_title(const struct gp_top *t, const struct gp_top_view *v, struct gp_top_line *line)
{
	char left[256] = "gpreempt top", right[128], every[GP_TIME_TEXT], devices[32], clients[32],
	     part[2][96];
	int gap;

	snprintf(right, sizeof(right), "%s%s%s", v->rights, v->rights[0] ? "  " : "", v->clock);
	if (strlen(left) + 2 + strlen(right) > v->width)
		snprintf(right, sizeof(right), "%s", v->rights);
	snprintf(part[0], sizeof(part[0]), "  %s  %s",
		 count_text(t->has_list, t->list.ndevices, "device", devices),
		 count_text(t->has_daemon, t->nclients, "client", clients));
	snprintf(part[1], sizeof(part[1]), "  every %s", gp_time_text(t->slot_ns, every));
	for (size_t i = 0; i < 2 && strlen(left) + strlen(part[i]) + 2 + strlen(right) <= v->width; i++)
		strcat(left, part[i]);
	gap = (int)v->width - (int)strlen(left) - (int)strlen(right);
	put(line, GP_TOP_BAR, "%s%*s%s", left, gap > 2 ? gap : 2, "", right);
}

/* On a narrow screen, what one can do without gives its room to figures, one column after the other. */
static void fit_table(struct gp_columns *table, const char *const *spare, size_t n, size_t screen)
{
	for (size_t i = 0; i < n && !gp_columns_have_room(table, screen); i++)
		gp_columns_leave_out(table, spare[i]);
	gp_columns_fit(table, screen);
}

static void draw_devices(const struct gp_top *t, const struct gp_top_view *v, const struct places *p,
			 struct gp_top_line *lines)
{
	static const char *const spare[] = { "STOPPED", "POLICY", "OFFLINE" };
	char text[GP_TOP_TEXT - 8];
	struct gp_columns table;

	gp_top_devices_table(&table, t, v->slot, 0, v->unicode);
	fit_table(&table, spare, sizeof(spare) / sizeof(spare[0]), v->width - MARK);
	put(&lines[p->devices], GP_TOP_HEADING, "  %s", gp_columns_line(&table, 0, text, sizeof(text)));
	for (size_t i = 0; i < p->ndevices; i++) {
		size_t row = p->first_device + i;
		int chosen = t->list.devices[row].device == v->device;

		put(&lines[p->devices + 1 + i], GP_TOP_PLAIN, "%c %s", chosen ? '>' : ' ',
		    gp_columns_line(&table, row + 1, text, sizeof(text)));
	}
	if (!p->ndevices)
		put(&lines[p->devices + 1], GP_TOP_PLAIN, "  %s",
		    t->has_list ? "no devices" : "devices are not known");
	gp_columns_free(&table);
}

static void draw_latency(const struct gp_top *t, const struct gp_top_view *v, struct gp_top_line *line)
{
	const struct gp_top_device *d = gp_top_device(t, v->device);
	size_t room = v->width - MARK - strlen(LATENCY) - strlen(MOST) - 8;
	char sparks[GP_TOP_TEXT], text[GP_TIME_TEXT];
	uint64_t most = d && t->has_daemon ? longest(&d->latency, v->slot, room) : GP_TOP_UNKNOWN;

	if (most == GP_TOP_UNKNOWN)
		put(line, GP_TOP_PLAIN, "  " LATENCY "-");
	else
		put(line, GP_TOP_PLAIN, "  " LATENCY "%.*s" MOST "%s", GP_TOP_TEXT - 64,
		    gp_top_sparks(&d->latency, v->slot, room, v->unicode, sparks), time_text(most, text));
}

static enum gp_top_style style_of(const struct gp_client_info *c)
{
	if (c->state == GP_CLIENT_WAITING || c->state == GP_CLIENT_HELD || c->resuming)
		return GP_TOP_STOPPED;
	return c->client_class == GP_CLASS_ONLINE ? GP_TOP_ONLINE : GP_TOP_PLAIN;
}

static void draw_clients(const struct gp_top *t, const struct gp_top_view *v, const struct places *p,
			 struct gp_top_line *lines)
{
	static const char *const spare[] = { "USER", "WEIGHT", "SLO", "DEVICE" };
	char text[GP_TOP_TEXT - 8];
	struct gp_columns table;

	if (!t->nclients) {
		put(&lines[p->clients], GP_TOP_PLAIN, "  %s",
		    t->has_daemon ? "no clients" : "clients are not known: gpreemptd alone knows them");
		return;
	}
	gp_clients_table(&table, &t->list, t->clients, t->nclients, 0);
	fit_table(&table, spare, sizeof(spare) / sizeof(spare[0]), v->width - MARK);
	put(&lines[p->clients], GP_TOP_HEADING, "  %s", gp_columns_line(&table, 0, text, sizeof(text)));
	for (size_t i = 0; i < p->nclients && v->first + i < t->nclients; i++) {
		size_t row = v->first + i;
		struct gp_top_line *line = &lines[p->clients + 1 + i];

		line->chosen = row == chosen_at(t, v);
		put(line, style_of(&t->clients[row]), "%c %s", line->chosen ? '>' : ' ',
		    gp_columns_line(&table, row + 1, text, sizeof(text)));
	}
	gp_columns_free(&table);
}

static void draw_status(const struct gp_top_view *v, const struct places *p, struct gp_top_line *lines)
{
	const char *text = v->status;

	for (size_t i = p->status; i + 1 < v->height; i++) {
		put(&lines[i], v->status_wrong ? GP_TOP_WRONG : GP_TOP_PLAIN, "%.*s",
		    (int)line_of(text, v->width), text);
		text = next_line(text, v->width);
	}
}

/* A character that is none of ASCII's becomes as many question marks as it has columns. */
static void make_ascii(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		char one[8] = "";

		do
			strncat(one, at, 1);
		while ((*++at & 0xc0) == 0x80 && strlen(one) < 4);
		if (one[0] & 0x80)
			to += sprintf(to, "%.*s", (int)gp_text_width(one), "??");
		else
			*to++ = one[0];
	}
	*to = '\0';
}

/* What the terminal cannot show is not sent to it, and no line is longer than it is wide. */
static void fit(struct gp_top_line *line, const struct gp_top_view *v)
{
	line->text[gp_text_fit(line->text, v->width)] = '\0';
	if (!v->unicode)
		make_ascii(line->text);
}

/* As many whole ones as there is room for. */
static int keys_fit(const char *keys, size_t width)
{
	size_t at = gp_text_fit(keys, width);

	while (keys[at] && at && strncmp(keys + at, "  ", 2) != 0)
		at--;
	return (int)at;
}

/* Its lines, the last without an end, as far as there is room. */
static void draw_help(const struct gp_top_view *v, struct gp_top_line *lines)
{
	const char *text = v->help;

	for (size_t i = 1; i + 1 < v->height; i++) {
		lines[i].chosen = 0;
		put(&lines[i], GP_TOP_PLAIN, "%.*s", (int)strcspn(text, "\n"), text);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

void gp_top_draw(const struct gp_top *t, const struct gp_top_view *v, struct gp_top_line *lines)
{
	char text[GP_REASON_TEXT];
	struct places p;

	memset(lines, 0, v->height * sizeof(*lines));
	if (is_too_small(v)) {
		put(&lines[0], GP_TOP_PLAIN, "too small: %dx%d at least", LEAST_WIDTH, LEAST_HEIGHT);
	} else {
		p = lay_out(t, v);
		draw_title(t, v, &lines[0]);
		draw_devices(t, v, &p, lines);
		draw_latency(t, v, &lines[p.latency]);
		if (p.wrong)
			put(&lines[p.wrong], GP_TOP_WRONG, "  REASON   %s", wrong_with(t, v, text));
		draw_clients(t, v, &p, lines);
		draw_status(v, &p, lines);
		if (v->help)
			draw_help(v, lines);
		put(&lines[v->height - 1], GP_TOP_BAR, "%.*s", keys_fit(v->keys, v->width), v->keys);
	}
	for (size_t i = 0; i < v->height; i++)
		fit(&lines[i], v);
}
