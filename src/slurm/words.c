// SPDX-License-Identifier: MIT
#include "slurm/words.h"

#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define MOST_WEIGHT 10000
#define USUAL_WEIGHT 100
#define USUAL_PATIENCE_NS (600 * GP_S)

#define FAIL(error, size, ...) (snprintf((error), (size), __VA_ARGS__), -EINVAL)

static uint32_t class_by_name(const char *name)
{
	return !strcmp(name, "online")    ? GP_CLASS_ONLINE
	       : !strcmp(name, "offline") ? GP_CLASS_OFFLINE
					  : GP_CLASS_UNKNOWN;
}

static int read_weight(const char *what, const char *text, uint32_t *ret, char *error, size_t size)
{
	uint64_t weight;

	if (gp_count_parse(text, &weight) < 0 || !weight || weight > MOST_WEIGHT)
		return FAIL(error, size, "%s: \"%s\" is no weight; write a number from 1 to %d", what, text,
			    MOST_WEIGHT);
	*ret = (uint32_t)weight;
	return 0;
}

/* The administrator */

static int read_usual_class(const char *text, struct gp_slurm_conf *c, char *error, size_t size)
{
	c->usual_class = class_by_name(text);
	return c->usual_class ? 0 : FAIL(error, size, "default=%s: write online or offline", text);
}

/* What slurmstepd's own folder is nobody knows. */
static int read_text(const char *name, const char *value, bool is_path, const char **ret, char *error,
		     size_t size)
{
	if (is_path && value[0] != '/')
		return FAIL(error, size, "%s=%s: write a whole path, from / on", name, value);
	*ret = value;
	return 0;
}

static int read_setting(const char *name, size_t len, const char *value, struct gp_slurm_conf *c, char *error,
			size_t size)
{
	const struct {
		const char *name;
		const char **to;
		bool is_path;
	} texts[] = { { "socket", &c->socket, true },
		      { "agent", &c->agent, true },
		      { "online_partitions", &c->online_partitions, false },
		      { "online_qos", &c->online_qos, false },
		      { "report", &c->report, true } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strlen(texts[i].name) == len && !strncmp(texts[i].name, name, len))
			return read_text(texts[i].name, value, texts[i].is_path, texts[i].to, error, size);
	if (!strncmp(name, "max_weight=", len + 1))
		return read_weight("max_weight", value, &c->most_weight, error, size);
	if (!strncmp(name, "default=", len + 1))
		return read_usual_class(value, c, error, size);
	return FAIL(
		error, size,
		"\"%s\" is no setting; there are socket=, agent=, online_partitions=, online_qos=, report=, "
		"max_weight=, default= and require",
		name);
}

int gp_slurm_conf_read(int argc, char **argv, struct gp_slurm_conf *ret, char *error, size_t size)
{
	struct gp_slurm_conf c = { .most_weight = USUAL_WEIGHT };
	int r = 0;

	for (int i = 0; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t len = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);

		if (!strcmp(argv[i], "require"))
			c.is_required = true;
		else if (read_setting(argv[i], len, equals ? equals + 1 : "", &c, r ? NULL : error,
				      r ? 0 : size) < 0)
			r = -EINVAL;
	}
	*ret = c;
	return r;
}

bool gp_slurm_is_listed(const char *list, const char *name)
{
	size_t len = name ? strlen(name) : 0;

	for (const char *at = list; len && at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && !strncmp(at, name, len))
			return true;
	return false;
}

/* The user */

static int read_time(const char *what, const char *text, const char *example, uint64_t *ret, char *error,
		     size_t size)
{
	char units[GP_TIME_UNITS];

	if (gp_time_parse(text, ret) == 0 && *ret)
		return 0;
	return FAIL(error, size, "%s: \"%s\" is no time; write a number with %s, as in: %s", what, text,
		    gp_time_units(units), example);
}

static int read_floor(const char *text, struct gp_slurm_asked *asked, char *error, size_t size)
{
	uint64_t permille;

	if (gp_percent_parse(text, &permille) < 0 || !permille || permille > 1000)
		return FAIL(error, size,
			    "--gpreempt-requeue-below: \"%s\" is no share of a GPU; write one as in: 5%%",
			    text);
	asked->floor_permille = (uint32_t)permille;
	if (!asked->patience_ns)
		asked->patience_ns = USUAL_PATIENCE_NS;
	return 0;
}

int gp_slurm_ask(struct gp_slurm_asked *asked, enum gp_slurm_option which, const char *text, char *error,
		 size_t size)
{
	switch (which) {
	case GP_SLURM_CLASS:
		asked->client_class = class_by_name(text);
		return asked->client_class
			       ? 0
			       : FAIL(error, size, "--gpreempt=%s: write online or offline", text);
	case GP_SLURM_SLO:
		return read_time("--gpreempt-slo", text, "20ms", &asked->slo_ns, error, size);
	case GP_SLURM_WEIGHT:
		return read_weight("--gpreempt-weight", text, &asked->weight, error, size);
	case GP_SLURM_FLOOR:
		return read_floor(text, asked, error, size);
	case GP_SLURM_PATIENCE:
		return read_time("--gpreempt-requeue-after", text, "10m", &asked->patience_ns, error, size);
	}
	return -EINVAL;
}

int gp_slurm_ask_check(const struct gp_slurm_asked *asked, const struct gp_slurm_conf *conf, char *error,
		       size_t size)
{
	bool asks_more = asked->slo_ns || asked->weight || asked->floor_permille || asked->patience_ns;

	if (asks_more && !asked->client_class && !conf->usual_class)
		return FAIL(error, size, "--gpreempt-...: write --gpreempt=online or offline, too");
	if (asked->patience_ns && !asked->floor_permille)
		return FAIL(error, size, "--gpreempt-requeue-after: write --gpreempt-requeue-below, too");
	return 0;
}

/* Names are divided by colons or spaces: ld.so(8). */
int gp_slurm_preload(const char *agent, const char *before, char *text, size_t size)
{
	size_t len = strlen(agent);
	bool is_there = !strncmp(before, agent, len) && strchr(": ", before[len]);
	int n = snprintf(text, size, "%s%s%s", is_there ? "" : agent, is_there || !*before ? "" : ":",
			 before);

	return (size_t)n < size ? 0 : -E2BIG;
}
