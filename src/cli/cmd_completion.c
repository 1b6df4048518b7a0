// SPDX-License-Identifier: MIT
/*
 * What shells may offer is read from what --help prints, and from the options'
 * table: they cannot disagree.  How a shell finds the place that the cursor is at
 * is in share/completion.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/wrap.h"
#include "ini/words.h"
#include "study/sources.h"

static const char usage[] =
	"usage: gpreempt completion bash|zsh|fish\n"
	"\n"
	"Prints a script by which the shell completes verbs, options and their values. It is installed\n"
	"with gpreempt where shells look for it; for a shell that looks elsewhere:\n"
	"\n"
	"examples:\n"
	"  source <(gpreempt completion bash)\n"
	"  gpreempt completion zsh > ~/.zfunc/_gpreempt\n"
	"  gpreempt completion fish > ~/.config/fish/completions/gpreempt.fish\n";

/* What may stand in a place: an option's value, or a verb's first argument. */
struct offer {
	char what[48];   /* as --help has it: "NAME|FILE" */
	char words[256]; /* "a b c" */
	bool files;
	bool commands;
	bool again; /* as the second argument too */
};

/* Names that --help leaves open, and what they are names of, or the names themselves. */
static const struct {
	const char *of, *what, *kind;
} names[] = {
	{ "device", "NAME", "device" },    { "policy", "NAME", "policy" }, { "show", "NAME", "scenario" },
	{ "sim", "SCENARIO", "scenario" }, { "help", "VERB", "verb" },     { "only", "LIST", "config" },
	{ "verify", "CHECK", GP_CHECKS },
};

static void list_verbs(char *list, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; gp_verbs[i] && used < size; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i ? " " : "", gp_verbs[i]->name);
}

static void list_names(const char *of, struct offer *o)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].of, of) || !strstr(o->what, names[i].what))
			continue;
		if (!strcmp(names[i].kind, "verb"))
			list_verbs(o->words, sizeof(o->words));
		else if (strchr(names[i].kind, ' '))
			snprintf(o->words, sizeof(o->words), "%s", names[i].kind);
		else
			gp_source_names(names[i].kind, o->words, sizeof(o->words));
	}
}

/* Of an option or verb of this name, by what --help says is to stand there: small letters are the word
 * itself. */
static void find_offer(const char *of, const char *what, size_t len, const char *choices, struct offer *ret)
{
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->what, sizeof(ret->what), "%.*s", (int)len, what);
	if (islower((unsigned char)what[0]))
		snprintf(ret->words, sizeof(ret->words), "%.*s", (int)strcspn(ret->what, " "), ret->what);
	else if (choices)
		snprintf(ret->words, sizeof(ret->words), "%s", choices);
	else
		list_names(of, ret);
	for (char *c = ret->words; *c; c++)
		if (*c == '|' || *c == ',')
			*c = ' ';
	ret->files = strstr(ret->what, "FILE") || strstr(ret->what, "PATH") || strstr(ret->what, "DIR") ||
		     strstr(ret->what, "LOG") || strstr(ret->what, "SCENARIO");
	ret->commands = strstr(ret->what, "COMMAND") != NULL;
	ret->again = strstr(ret->what, "] [NAME]") != NULL;
}

static void find_argument(const struct gp_verb *verb, struct offer *ret)
{
	const char *what = verb->usage + strlen("usage: gpreempt ") + strlen(verb->name);

	what += strspn(what, " ");
	find_offer(verb->name, what, strcspn(what, "\n"), NULL, ret);
}

/* What --help says of an option, in one line; empty: nothing. */
static void find_text(const char *line, char *text, size_t size)
{
	size_t used = 0, len;

	text[0] = '\0';
	for (bool first = true; line && used < size; first = false) {
		len = strcspn(line, "\n");
		if (!first && (len <= GP_TEXT_AT || strspn(line, " ") < GP_TEXT_AT))
			return;
		if (len > GP_TEXT_AT)
			used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? " " : "",
						 (int)(len - GP_TEXT_AT), line + GP_TEXT_AT);
		line += len + (line[len] == '\n');
	}
}

struct option_text {
	struct gp_option_info info;
	struct offer value;
	char text[256];
};

static bool find_option(const struct gp_verb *verb, size_t i, struct option_text *ret)
{
	const char *line, *what;
	char head[40];

	if (!gp_option_at(verb, i, &ret->info))
		return false;
	snprintf(head, sizeof(head), "\n  --%s ", ret->info.name);
	line = strstr(verb->usage, head);
	what = line ? line + strlen(head) : "";
	find_offer(ret->info.name, what, strcspn(what, " \n"), ret->info.choices, &ret->value);
	find_text(line ? line + 1 : NULL, ret->text, sizeof(ret->text));
	if (!strcmp(ret->info.name, "help"))
		snprintf(ret->text, sizeof(ret->text), "how it is used");
	return true;
}

/* In a shell's single quotes, with \ before each of these. */
static void put_text(const char *text, const char *special, const char *quote)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			putchar('\\');
		if (*text == '\'')
			fputs(quote, stdout);
		else
			putchar(*text);
	}
}

#define IN_BASH "'\\''" /* a ' there, and in zsh */
#define IN_FISH "\\'"

/* bash */

static void put_bash_offer(const struct offer *o)
{
	if (o->words[0])
		printf(" words='%s'", o->words);
	if (o->files)
		fputs(" files=yes", stdout);
	if (o->commands)
		fputs(" commands=yes", stdout);
	if (o->again)
		fputs(" again=yes", stdout);
}

static void put_bash_verb(const struct gp_verb *verb)
{
	struct option_text option;
	struct offer argument;

	find_argument(verb, &argument);
	printf("\t'%s')", verb->name);
	put_bash_offer(&argument);
	fputs(" options='", stdout);
	for (size_t i = 0; find_option(verb, i, &option); i++)
		printf("%s--%s", i ? " " : "", option.info.name);
	fputs("' values='", stdout);
	for (size_t i = 0; find_option(verb, i, &option); i++)
		if (option.info.takes_value && !option.info.may_omit)
			printf(" --%s", option.info.name);
	puts("' ;;");
}

static void put_bash_values(const struct gp_verb *verb)
{
	struct option_text option;

	for (size_t i = 0; find_option(verb, i, &option); i++) {
		if (!option.value.words[0] && !option.value.files)
			continue;
		printf("\t'%s --%s')", verb->name, option.info.name);
		put_bash_offer(&option.value);
		puts(" ;;");
	}
}

static void put_bash(void)
{
	char list[512];

	list_verbs(list, sizeof(list));
	puts("# Completion of gpreempt " GPREEMPT_VERSION " for bash, made by: gpreempt completion bash\n"
	     "\n"
	     "_gpreempt_data()\n"
	     "{\n"
	     "\twords= files= commands= again=\n"
	     "\tcase $1 in");
	printf("\t'') words='%s' options='--help --version' ;;\n", list);
	for (size_t i = 0; gp_verbs[i]; i++) {
		put_bash_verb(gp_verbs[i]);
		put_bash_values(gp_verbs[i]);
	}
	puts("\tesac\n"
	     "}");
}

/* zsh */

static void put_zsh_offer(const struct offer *o)
{
	if (o->files && o->words[0])
		printf(" _gpreempt_names %s", o->words);
	else if (o->files)
		fputs("_files", stdout);
	else if (o->words[0])
		printf("(%s)", o->words);
	else
		putchar(' ');
}

static void put_zsh_option(const struct option_text *option)
{
	printf(" '--%s%s", option->info.name,
	       !option->info.takes_value ? ""
	       : option->info.may_omit   ? "=-"
					 : "=");
	if (option->text[0]) {
		putchar('[');
		put_text(option->text, "[]\\:", IN_BASH);
		putchar(']');
	}
	if (option->info.takes_value) {
		fputs(option->info.may_omit ? "::" : ":", stdout);
		put_text(option->value.what, "[]\\:", IN_BASH);
		putchar(':');
		put_zsh_offer(&option->value);
	}
	putchar('\'');
}

static void put_zsh_verb(const struct gp_verb *verb)
{
	struct option_text option;
	struct offer argument;

	find_argument(verb, &argument);
	printf("\t'%s') specs=(", verb->name);
	for (size_t i = 0; find_option(verb, i, &option); i++)
		put_zsh_option(&option);
	if (argument.commands) {
		fputs(" '(-)1:command:_command_names -e' '*::argument:_normal'", stdout);
	} else if (argument.words[0] || argument.files) {
		for (int i = 1; i <= 1 + argument.again; i++) {
			printf(" '%d:argument:", i);
			put_zsh_offer(&argument);
			putchar('\'');
		}
	}
	puts(") ;;");
}

static void put_zsh(void)
{
	puts("#compdef gpreempt gpreemptd queue_finder\n"
	     "# Completion of gpreempt " GPREEMPT_VERSION " for zsh, made by: gpreempt completion zsh\n"
	     "\n"
	     "_gpreempt_data()\n"
	     "{\n"
	     "\tcase $1 in");
	fputs("\t'') verbs=(", stdout);
	for (size_t i = 0; gp_verbs[i]; i++) {
		printf(" '%s:", gp_verbs[i]->name);
		put_text(gp_verbs[i]->summary, "\\:", IN_BASH);
		putchar('\'');
	}
	puts(") ;;");
	for (size_t i = 0; gp_verbs[i]; i++)
		put_zsh_verb(gp_verbs[i]);
	puts("\tesac\n"
	     "}");
}

/* fish */

static void put_fish_offer(const struct offer *o)
{
	if (o->files)
		fputs(" -F", stdout);
	if (o->words[0])
		printf(" -a '%s'", o->words);
}

static void put_fish_options(const struct gp_verb *verb)
{
	struct option_text option;

	for (size_t i = 0; find_option(verb, i, &option); i++) {
		printf("complete -c gpreempt -n '__gpreempt_verb %s' -l %s", verb->name, option.info.name);
		if (option.info.takes_value && !option.info.may_omit)
			fputs(option.value.files ? " -r" : " -x", stdout);
		put_fish_offer(&option.value);
		fputs(" -d '", stdout);
		put_text(option.text, "\\", IN_FISH);
		puts("'");
	}
}

/* The options that take values: their values are not the command. A "-" ends the function's own options. */
static void put_fish_command(const struct gp_verb *verb)
{
	struct option_text option;

	fputs(" -a '(__fish_complete_subcommand --fcs-skip=2 -", stdout);
	for (size_t i = 0; find_option(verb, i, &option); i++)
		if (option.info.takes_value)
			printf(" --%s", option.info.name);
	fputs(")'", stdout);
}

static void put_fish_verb(const struct gp_verb *verb)
{
	struct offer argument;

	printf("complete -c gpreempt -n __gpreempt_verb -a %s -d '", verb->name);
	put_text(verb->summary, "\\", IN_FISH);
	puts("'");
	put_fish_options(verb);
	find_argument(verb, &argument);
	if (!argument.commands && !argument.files && !argument.words[0])
		return;
	printf("complete -c gpreempt -n '__gpreempt_verb %s'", verb->name);
	if (argument.commands)
		put_fish_command(verb);
	else
		put_fish_offer(&argument);
	putchar('\n');
}

static void put_fish(void)
{
	puts("# Completion of gpreempt " GPREEMPT_VERSION " for fish, made by: gpreempt completion fish\n"
	     "\n"
	     "complete -c gpreempt -f");
	for (size_t i = 0; gp_verbs[i]; i++)
		put_fish_verb(gp_verbs[i]);
}

static const struct {
	const char *name;
	void (*put)(void);
} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct gp_options opts;
	int code = gp_options_parse(verb, argc, argv, 1, 1, &opts);

	if (code >= 0)
		return code;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(shells[i].name, opts.argv[0]))
			continue;
		shells[i].put();
		fputs(gp_embed_find("completion", opts.argv[0])->text, stdout);
		return GP_EXIT_OK;
	}
	return gp_fail(GP_EXIT_BAD_INPUT, "completion: no \"%s\"; there are: bash, zsh, fish", opts.argv[0]);
}

const struct gp_verb gp_verb_completion = {
	.name = "completion",
	.summary = "a script by which the shell completes what is typed",
	.usage = usage,
	.options = "",
	.run = run,
};
