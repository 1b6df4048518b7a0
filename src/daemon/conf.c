// SPDX-License-Identifier: MIT
#include "daemon/conf.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/listen.h"
#include "daemon/conf_file.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/process.h"
#include "wire/wire.h"

#define FILE_OF_ROOT "/etc/gpreempt/gpreemptd.conf"
#define FAILED 1
#define BAD_INPUT 2

static const char usage[] =
	"usage: gpreemptd [OPTION...]\n"
	"Schedules GPUs: online work takes them from offline work. Never leaves a queue stopped.\n"
	"\n"
	"  --config FILE     settings, before those given here (root's: " FILE_OF_ROOT ")\n"
	"  --socket PATH     where to listen; " GP_WIRE_SOCKET ", or a user's own\n"
	"  --class-sockets DIR\n"
	"                    where to listen for containers, DIR/online and DIR/offline, or none; root's\n"
	"                    usual socket has " GP_CLASS_FOLDER " beside it\n"
	"  --ways LIST       how queues may be stopped, the first way first: session,update,park,\n"
	"                    dbg,private; dbg? is dbg when a request names it (session,update,park)\n"
	"  --lease TIME      agents resume everything after that long without a word (3s)\n"
	"  --scan TIME       how often to look for queues; 0s is once (1s)\n"
	"  --patience TIME   how long a stop or a resume may take (10s)\n"
	"  --classes FILE    which queues are online (" GP_CONF_CLASSES ")\n"
	"  --rule RULE       one more rule, before the file's: online:command=serve*\n"
	"  --sample          tell busy queues from idle ones\n"
	"  --root DIR        look for sysfs, debugfs and /proc there (/)\n"
	"  --old-kernel      do without what older kernels lack: pidfds, SO_PASSRIGHTS, epoll_pwait2\n"
	"  --check           read all of that, say which files, or what is wrong, and end\n"
	"  --print-config    print the settings, as a file that says the same, and end\n"
	"  --help, --version\n";

enum { CONFIG = 256, RULE, CHECK, PRINT_CONFIG, HELP, VERSION, DBG, UID, ATTACH, NO_OPTION = '?' };

/* Options that are settings of the file: their values are their places here. */
static const struct {
	const char *option, *section, *name;
	int takes_value; /* else it means yes */
} settings[] = {
	{ "--socket", "daemon", "socket", 1 },     { "--ways", "daemon", "ways", 1 },
	{ "--lease", "daemon", "lease", 1 },       { "--scan", "daemon", "scan", 1 },
	{ "--patience", "daemon", "patience", 1 }, { "--sample", "daemon", "sample", 0 },
	{ "--root", "daemon", "root", 1 },         { "--old-kernel", "daemon", "old_kernel", 0 },
	{ "--classes", "classes", "include", 1 },  { "--class-sockets", "daemon", "class_sockets", 1 },
};

#define NSETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct option others[] = {
	{ "config", required_argument, NULL, CONFIG }, { "rule", required_argument, NULL, RULE },
	{ "check", no_argument, NULL, CHECK },         { "print-config", no_argument, NULL, PRINT_CONFIG },
	{ "help", no_argument, NULL, HELP },           { "version", no_argument, NULL, VERSION },
	{ "dbg", required_argument, NULL, DBG }, /* what gpreemptd starts for itself */
	{ "uid", required_argument, NULL, UID },       { "attach", required_argument, NULL, ATTACH },
};

#define NOTHERS (sizeof(others) / sizeof(others[0]))

/* What is said before any setting counts. */
struct asked {
	const char *file; /* NULL: the usual one, if it is there */
	bool only_checks, only_prints;
	const char *text; /* not NULL: print that alone */
};

static int complain(const char *option, const char *what)
{
	(void)gp_die("%s%s", option, what);
	return -EINVAL;
}

static void list_options(struct option all[NSETTINGS + NOTHERS + 1])
{
	for (size_t i = 0; i < NSETTINGS; i++)
		all[i] = (struct option){ settings[i].option + 2, settings[i].takes_value, NULL, (int)i };
	memcpy(all + NSETTINGS, others, sizeof(others));
	all[NSETTINGS + NOTHERS] = (struct option){ 0 };
}

/* Calls take for each option. */
static int each_option(struct gp_conf *conf, int (*take)(struct gp_conf *conf, int option, void *arg),
		       void *arg)
{
	struct option all[NSETTINGS + NOTHERS + 1];
	int c, r = 0;

	list_options(all);
	optind = 0; /* from the beginning */
	while (r == 0 && (c = getopt_long(conf->argc, conf->argv, "", all, NULL)) != -1)
		r = take(conf, c, arg);
	if (r == 0 && optind < conf->argc)
		r = complain(conf->argv[optind], " is one too many; see gpreemptd --help");
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
		return complain("--dbg, --uid and --attach", " are for gpreemptd itself");
	*ret = (uint32_t)n;
	return 0;
}

static int take_first(struct gp_conf *conf, int option, void *arg)
{
	struct asked *asked = arg;

	switch (option) {
	case NO_OPTION:
		return complain("see gpreemptd --help", "");
	case CONFIG:
		asked->file = optarg;
		return 0;
	case CHECK:
		asked->only_checks = true;
		return 0;
	case PRINT_CONFIG:
		asked->only_prints = true;
		return 0;
	case HELP:
	case VERSION:
		if (!asked->text)
			asked->text = option == HELP ? usage : "gpreemptd " GPREEMPT_VERSION "\n";
		return 0;
	case DBG:
		return parse_number(optarg, INT32_MAX, &conf->dbg_pid);
	case UID:
		return parse_number(optarg, UINT32_MAX, &conf->dbg_uid);
	case ATTACH:
		return parse_number(optarg, INT32_MAX, &conf->attach_pid);
	default:
		return 0;
	}
}

static int take_setting(struct gp_conf *conf, int option, void *arg)
{
	struct gp_diag diag = { "" };
	size_t i = (size_t)option;
	int r;

	(void)arg;
	if (option == RULE)
		return add_rule(conf, optarg);
	if (i >= NSETTINGS)
		return 0;
	r = gp_conf_set(conf, settings[i].section, settings[i].name, settings[i].takes_value ? optarg : "yes",
			settings[i].option, &diag);
	if (r < 0)
		(void)gp_die("%s", diag.text);
	if (!strcmp(settings[i].section, "classes"))
		conf->classes_said = settings[i].option;
	return r;
}

/* A user's gpreemptd has no use for the socket and the limits of root's. */
static int read_file(struct gp_conf *conf, const char *named)
{
	const char *path = named ? named : FILE_OF_ROOT;
	int r;

	if (!named && geteuid() != 0)
		return 0;
	r = gp_conf_read(conf, path);
	if (r == -ENOENT && !named)
		return 0;
	conf->file = path;
	if (r < 0 && r != -EINVAL)
		(void)gp_die("%s: %s; --config names another", path, strerror(-r));
	return r;
}

/* The usual one need not be there. */
static int read_rules_file(struct gp_conf *conf, char *error, size_t size)
{
	const char *file = conf->classes_file, *said = conf->classes_said ? conf->classes_said : "include =";
	bool is_usual = !strcmp(file, GP_CONF_CLASSES);
	int r = gp_classes_read(conf->classes, file, error, size);

	conf->has_rules = r == 0;
	if (r == -ENOENT && is_usual)
		return 0;
	if (r < 0 && r != -EINVAL)
		snprintf(error, size, "%s%s%s: %s", is_usual ? "" : said, is_usual ? "" : " ", file,
			 strerror(-r));
	return r;
}

/* After the command line's, so that those come first. */
static int read_rules(struct gp_conf *conf)
{
	char error[4096] = "", *rest = error, *line;
	int r = gp_classes_environment(conf->classes, error, sizeof(error));

	if (r == 0)
		r = read_rules_file(conf, error, sizeof(error));
	while (r < 0 && (line = strsep(&rest, "\n")))
		(void)gp_die("%s", line);
	return r;
}

/* root's is for everybody, a user's for that user. */
static int default_socket(struct gp_conf *conf)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int n;

	if (conf->socket[0])
		return 0;
	if (geteuid() == 0) {
		strcpy(conf->socket, GP_WIRE_SOCKET);
		return 0;
	}
	if (!runtime || !runtime[0])
		return complain("XDG_RUNTIME_DIR is not set: ", "say where to listen, as in --socket PATH");
	n = snprintf(conf->socket, sizeof(conf->socket), "%s/" GP_WIRE_USER_SOCKET, runtime);
	if ((size_t)n >= sizeof(conf->socket))
		return complain("XDG_RUNTIME_DIR is too long: ", "say where to listen, as in --socket PATH");
	return 0;
}

/* One that listens elsewhere is not the machine's: it leaves that one's folder alone. */
static void default_class_sockets(struct gp_conf *conf)
{
	if (!conf->class_sockets[0])
		strcpy(conf->class_sockets, geteuid() == 0 && !strcmp(conf->socket, GP_WIRE_SOCKET)
						    ? GP_CLASS_FOLDER
						    : GP_CONF_NONE);
}

/* The file, what goes before it, and what follows from both; the first error is returned, all are told. */
static int fill(struct gp_conf *conf, const char *file)
{
	int first = read_file(conf, file);
	int r = each_option(conf, take_setting, NULL);

	first = first < 0 ? first : r;
	r = default_socket(conf);
	first = first < 0 ? first : r;
	default_class_sockets(conf);
	r = read_rules(conf);
	conf->core.lease_ns = conf->lease_ns;
	return first < 0 ? first : r;
}

static int begin(struct gp_conf *conf, int argc, char **argv, struct asked *asked)
{
	int r;

	*conf = (struct gp_conf){ .argc = argc, .argv = argv };
	*asked = (struct asked){ 0 };
	gp_conf_preset(conf);
	r = gp_classes_new(&conf->classes);
	return r < 0 ? r : each_option(conf, take_first, asked);
}

static void print_files(const struct gp_conf *conf)
{
	if (conf->file)
		printf("settings: %s\n", conf->file);
	else
		printf("settings: the defaults; %s\n", geteuid() == 0
							       ? "there is no " FILE_OF_ROOT
							       : "a user's are in a file by --config alone");
	printf("rules: %s%s\n", conf->has_rules ? "" : "none; there is no ", conf->classes_file);
}

/* What was asked for besides. */
static int answer(const struct gp_conf *conf, const struct asked *asked, int r, int *ret_status)
{
	if (r == 0 && asked->only_checks && !asked->only_prints)
		print_files(conf);
	if (r == 0 && asked->only_prints)
		gp_conf_print(conf);
	if (r == 0 && !asked->only_checks && !asked->only_prints)
		return 0;
	*ret_status = r == 0 ? 0 : asked->only_checks ? FAILED : BAD_INPUT;
	return 1;
}

int gp_conf_parse(struct gp_conf *conf, int argc, char **argv, int *ret_status)
{
	struct asked asked;
	int r = begin(conf, argc, argv, &asked);

	*ret_status = r < 0 ? BAD_INPUT : 0;
	if (r == 0 && asked.text)
		fputs(asked.text, stdout);
	if (r < 0 || asked.text)
		return 1;
	if (conf->dbg_pid || conf->attach_pid)
		return 0;
	r = answer(conf, &asked, fill(conf, asked.file), ret_status);
	if (r == 0 && conf->old_kernel) {
		gp_process_without_pidfds();
		gp_loop_in_whole_ms();
	}
	return r;
}

static void keep(const char *name, char *now, const char *before)
{
	if (strcmp(now, before) != 0)
		gp_log("%s stays %s until gpreemptd is started again", name, before);
	strcpy(now, before);
}

int gp_conf_reload(struct gp_conf *conf)
{
	struct gp_conf fresh;
	struct asked asked;
	int r = begin(&fresh, conf->argc, conf->argv, &asked);

	if (r == 0)
		r = fill(&fresh, asked.file);
	if (r < 0) {
		gp_conf_free(&fresh);
		return r;
	}
	keep("socket", fresh.socket, conf->socket);
	keep("class_sockets", fresh.class_sockets, conf->class_sockets);
	keep("root", fresh.root, conf->root);
	fresh.old_kernel = conf->old_kernel;
	gp_conf_free(conf);
	*conf = fresh;
	return 0;
}

void gp_conf_free(struct gp_conf *conf)
{
	gp_classes_free(conf->classes);
	conf->classes = NULL;
}
