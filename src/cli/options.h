/* SPDX-License-Identifier: MIT */
/* The command line of a verb. */
#ifndef GP_CLI_OPTIONS_H
#define GP_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes. */
#define GP_EXIT_OK 0
#define GP_EXIT_FAILED 1
#define GP_EXIT_BAD_INPUT 2

#define GP_MOST_RULES 16

/* What a request or step of sim-client may be. */
#define GP_WORKS "infer-1ms, infer-10ms, decode, train, long"

/* What verify knows. */
#define GP_CHECKS \
	"basic frequent edge latency throughput stability stress batch reservation compare models all"

/* What metrics becomes, and where it listens on this machine's own address. */
#define GP_METRICS_PROGRAM "gpreempt-metrics"
#define GP_METRICS_PORT "9847"

struct gp_verb {
	const char *name;
	const char *summary;
	const char *usage;   /* what --help prints */
	const char *options; /* the long options it takes, as "json out"; --help is always there */
	int has_command;     /* 1: options end with the first argument: what follows is another program's */
	int (*run)(const struct gp_verb *verb, int argc, char **argv);
};

struct gp_options {
	const struct gp_verb *verb; /* whose they are */
	const char *out;
	const char *device;
	const char *policy;
	const char *only;
	const char *show;
	const char *cluster;
	const char *backend;
	const char *container;
	const char *root;
	const char *socket;
	const char *way;
	const char *tag;
	const char *gpu;
	const char *job;
	const char *name;
	const char *work;
	const char *client;
	const char *kind;
	const char *docker_args;
	const char *class_sockets;
	const char *listen;
	const char *unix_path;
	const char *old_dir;
	const char *new_dir;
	const char *rules[GP_MOST_RULES];
	uint64_t seed;
	uint64_t duration_ns;
	uint64_t jobs;     /* 0: as many as CPUs */
	uint64_t watch_ns; /* 0: as often as is usual; so with interval_ns */
	uint64_t interval_ns;
	uint64_t lease_ns;
	uint64_t timeout_ns; /* 0: not given; so with for_ns and number */
	uint64_t for_ns;
	uint64_t since_ns;
	uint64_t number;
	uint64_t pid; /* 0: not given */
	uint64_t devices;
	uint64_t queues;
	uint64_t requests; /* 0: any number */
	uint64_t rate_milli;
	uint64_t weight;
	uint64_t base;    /* 0: not given */
	uint64_t slo_ns;  /* 0: not given; so with weight */
	uint32_t arrival; /* enum gp_arrival */
	uint32_t type;    /* enum gp_preempt_type */
	uint32_t min_priority;
	uint32_t max_priority;
	uint32_t nrules;
	int json;
	int list;
	int hints;
	int strict;
	int verbose;
	int quiet;
	int online;
	int offline;
	int wide;
	int follow;
	int retry;
	int once;
	int dry_run;
	int simulated;
	int print_env;
	int per_client;
	int intrusive;
	int full;
	int old_way;
	int new_way;
	int has_watch;
	int has_seed;
	int has_duration;
	int has_lease;
	int has_since;
	int has_type;
	int has_priority;
	int argc; /* what is not an option */
	char **argv;
};

/*
 * Returns -1 to go on, else the exit code: GP_EXIT_OK after --help, bad input after
 * a complaint.  argv[0] is the verb.
 */
int gp_options_parse(const struct gp_verb *verb, int argc, char **argv, int min_args, int max_args,
		     struct gp_options *ret);

struct gp_option_info {
	const char *name;
	const char
		*choices; /* words that are usual or all that are allowed, as "a b c"; NULL: none is known */
	int takes_value;
	int may_omit; /* the value: then it is given as --name=value alone */
};

/* The verb's i-th option, --help first. Returns 0 if there are no more. */
int gp_option_at(const struct gp_verb *verb, size_t i, struct gp_option_info *ret);
/* Prints "gpreempt: ..." on one line of stderr and returns code. */
int gp_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same of a word that is no verb. Bad input. */
int gp_complain_verb(const char *name);

/* In the order in which they are shown. */
#define GP_EACH_VERB(DO) \
	DO(demo) \
	DO(sim) \
	DO(sim_gpu) \
	DO(sim_client) \
	DO(run) \
	DO(cdi) \
	DO(attach) \
	DO(slurm_weights) \
	DO(slurm_requeue) \
	DO(slurm_comment) \
	DO(list) \
	DO(ps) \
	DO(find) \
	DO(suspend) \
	DO(resume) \
	DO(preempt) \
	DO(wait) \
	DO(reserve) \
	DO(policy) \
	DO(hint) \
	DO(stats) \
	DO(top) \
	DO(events) \
	DO(metrics) \
	DO(doctor) \
	DO(selftest) \
	DO(verify) \
	DO(report) \
	DO(completion) \
	DO(version) \
	DO(help)

#define GP_DECLARE_VERB(name) extern const struct gp_verb gp_verb_##name;
GP_EACH_VERB(GP_DECLARE_VERB)
#undef GP_DECLARE_VERB

/* All verbs, ended by NULL. */
extern const struct gp_verb *const gp_verbs[];

#endif
