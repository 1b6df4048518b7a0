// SPDX-License-Identifier: MIT
#include "daemon/conf.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/process.h"
#include "wire/wire.h"

#define CLASSES "/etc/gpreempt/classes.ini"
#define BAD_INPUT 2
#define MOST_TIME (3600 * GP_S)

static const char usage[] =
	"usage: gpreemptd [OPTION...]\n"
	"Stops and resumes GPU queues of other processes for those who ask, and never leaves one stopped.\n"
	"\n"
	"  --socket PATH     where to listen; " GP_WIRE_SOCKET ", or a user's own\n"
	"  --ways LIST       how queues may be stopped, the first way first: update,dbg,private;\n"
	"                    dbg? is dbg when a request names it (update)\n"
	"  --lease TIME      agents resume everything after that long without a word (3s)\n"
	"  --scan TIME       how often to look for queues; 0s is never (1s)\n"
	"  --patience TIME   how long a stop or a resume may take (10s)\n"
	"  --classes FILE    which queues are online (" CLASSES ")\n"
	"  --rule RULE       one more rule, before the file's: online:command=serve*\n"
	"  --sample          tell busy queues from idle ones\n"
	"  --root DIR        look for sysfs, debugfs and /proc there (/)\n"
	"  --old-kernel      do without what older kernels lack: pidfds, SO_PASSRIGHTS\n"
	"  --help, --version\n";

enum {
	SOCKET,
	WAYS,
	LEASE,
	SCAN,
	PATIENCE,
	CLASSES_FILE,
	RULE,
	SAMPLE,
	ROOT,
	OLD_KERNEL,
	HELP,
	VERSION,
	DBG,
	UID
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, SOCKET },
	{ "ways", required_argument, NULL, WAYS },
	{ "lease", required_argument, NULL, LEASE },
	{ "scan", required_argument, NULL, SCAN },
	{ "patience", required_argument, NULL, PATIENCE },
	{ "classes", required_argument, NULL, CLASSES_FILE },
	{ "rule", required_argument, NULL, RULE },
	{ "sample", no_argument, NULL, SAMPLE },
	{ "root", required_argument, NULL, ROOT },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, VERSION },
	{ "old-kernel", no_argument, NULL, OLD_KERNEL },
	{ "dbg", required_argument, NULL, DBG }, /* what gpreemptd starts for itself */
	{ "uid", required_argument, NULL, UID },
	{ 0 },
};

static int complain(const char *option, const char *what)
{
	(void)gp_die("%s%s", option, what);
	return -EINVAL;
}

static int parse_time(const char *option, const char *text, uint64_t least, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "s", GP_S }, { "ms", GP_MS }, { "us", GP_US } };
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno)
		return complain(option, " wants a time, as 3s or 500ms");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (n > MOST_TIME / units[i].ns || n * units[i].ns < least)
			return complain(option, " is too short or too long");
		*ret = n * units[i].ns;
		return 0;
	}
	return complain(option, " wants a time with its unit: s, ms or us");
}

static int set_socket(struct gp_conf *conf, const char *path)
{
	int n = snprintf(conf->socket, sizeof(conf->socket), "%s", path);

	if (n <= 0 || (size_t)n >= sizeof(conf->socket))
		return complain("--socket", " is empty, or longer than the address of a socket can be");
	return 0;
}

static int set_ways(struct gp_conf *conf, const char *list)
{
	char error[160];
	int r = gp_ways_parse(list, &conf->ways, error, sizeof(error));

	if (r < 0)
		(void)gp_die("--ways: %s", error);
	return r;
}

static int add_rule(struct gp_conf *conf, const char *rule)
{
	char error[256] = "";
	int r = gp_classes_add(conf->classes, rule, "--rule", error, sizeof(error));

	if (r < 0)
		(void)gp_die("--rule: %s", error[0] ? error : strerror(-r));
	return r;
}

static int parse_number(const char *text, uint32_t most, uint32_t *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text || n > most)
		return complain("--dbg and --uid", " are for gpreemptd itself");
	*ret = (uint32_t)n;
	return 0;
}

static int take(struct gp_conf *conf, int option, const char **classes_file)
{
	switch (option) {
	case SOCKET:
		return set_socket(conf, optarg);
	case WAYS:
		return set_ways(conf, optarg);
	case LEASE:
		return parse_time("--lease", optarg, 30 * GP_MS, &conf->lease_ns);
	case SCAN:
		return parse_time("--scan", optarg, 0, &conf->scan_ns);
	case PATIENCE:
		return parse_time("--patience", optarg, 10 * GP_MS, &conf->patience_ns);
	case CLASSES_FILE:
		*classes_file = optarg;
		return 0;
	case RULE:
		return add_rule(conf, optarg);
	case SAMPLE:
		conf->sample = 1;
		return 0;
	case ROOT:
		conf->root = optarg;
		return 0;
	case DBG:
		return parse_number(optarg, INT32_MAX, &conf->dbg_pid);
	case UID:
		return parse_number(optarg, UINT32_MAX, &conf->dbg_uid);
	case OLD_KERNEL:
		gp_process_without_pidfds();
		conf->old_kernel = 1;
		return 0;
	default:
		return complain("see gpreemptd --help", "");
	}
}

/* After the command line's, so that those come first. */
static int read_rules(struct gp_conf *conf, const char *file)
{
	char error[256] = "";
	int r = gp_classes_environment(conf->classes, error, sizeof(error));

	if (r == 0) {
		r = gp_classes_read(conf->classes, file ? file : CLASSES, error, sizeof(error));
		if (r == -ENOENT && !file)
			r = 0;
		if (r < 0 && !error[0])
			snprintf(error, sizeof(error), "%s: %s", file ? file : CLASSES, strerror(-r));
	}
	if (r < 0)
		(void)gp_die("%s", error);
	return r;
}

/* root's is for everybody, a user's for that user. */
static int default_socket(struct gp_conf *conf)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[256];

	if (conf->socket[0])
		return 0;
	if (geteuid() == 0)
		return set_socket(conf, GP_WIRE_SOCKET);
	if (!runtime || !runtime[0])
		return complain("XDG_RUNTIME_DIR is not set: ", "say where to listen, as in --socket PATH");
	snprintf(path, sizeof(path), "%s/gpreempt/gpreemptd.sock", runtime);
	return set_socket(conf, path);
}

static int complete(struct gp_conf *conf, const char *classes_file)
{
	int r;

	if (conf->dbg_pid)
		return 0;
	r = default_socket(conf);
	return r < 0 ? r : read_rules(conf, classes_file);
}

static int parse(struct gp_conf *conf, int argc, char **argv, bool *ret_said)
{
	const char *classes_file = NULL;
	int c, r = 0;

	while (r == 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == HELP || c == VERSION) {
			fputs(c == HELP ? usage : "gpreemptd " GPREEMPT_VERSION "\n", stdout);
			*ret_said = true;
			return 0;
		}
		r = take(conf, c, &classes_file);
	}
	if (r == 0 && optind < argc)
		r = complain(argv[optind], " is one too many; see gpreemptd --help");
	return r < 0 ? r : complete(conf, classes_file);
}

int gp_conf_parse(struct gp_conf *conf, int argc, char **argv, int *ret_status)
{
	bool said = false;
	int r;

	*conf = (struct gp_conf){ .root = "/",
				  .ways = { .n = 1, .way = { { .way = GP_KFD_WAY_UPDATE } } },
				  .lease_ns = 3 * GP_S,
				  .scan_ns = GP_S,
				  .patience_ns = 10 * GP_S,
				  .policy = "priority" };
	r = gp_classes_new(&conf->classes);
	if (r == 0)
		r = parse(conf, argc, argv, &said);
	if (r == 0 && !said)
		return 0;
	*ret_status = r < 0 ? BAD_INPUT : 0;
	return 1;
}

void gp_conf_free(struct gp_conf *conf)
{
	gp_classes_free(conf->classes);
	conf->classes = NULL;
}
