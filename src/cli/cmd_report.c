// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/python.h"
#include "cli/wrap.h"
#include "study/files.h"
#include "study/output.h"

static const char usage[] =
	"usage: gpreempt report DIR [options]\n"
	"       gpreempt report --old DIR --new DIR [options]\n"
	"\n"
	"Makes the page and the table again from DIR/result.json; or from what gpreempt verify\n"
	"wrote of the design notes' two ways a page that compares them.\n"
	"\n"
	"  --old DIR          what gpreempt verify --old --out wrote\n"
	"  --new DIR          what gpreempt verify --new --out wrote; the same DIR if it did both\n"
	"  --out FILE         where to write the page (DIR/index.html; of two ways\n"
	"                     DIR/report.html), or of two ways Markdown, if it ends with .md\n"
	"  --json             print the result, checked, not the table\n"
	"\n"
	"examples:\n"
	"  gpreempt report gpreempt-demo\n"
	"  gpreempt report mine --out /tmp/mine.html\n"
	"  gpreempt report --old old --new new --out compared.html\n";

static int make_page(const char *path, const char *json)
{
	char *html;
	int r;

	r = gp_page_make(json, "", &html);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "cannot make the page: %s", strerror(-r));
	r = gp_file_write(path, html);
	free(html);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s: cannot write the page: %s", path, strerror(-r));
	return GP_EXIT_OK;
}

static int report(struct json_object *result, const char *dir, const struct gp_options *opts)
{
	char path[PATH_MAX];
	int code;

	snprintf(path, sizeof(path), "%s/index.html", dir);
	code = make_page(opts->out ? opts->out : path, gp_json_text(result));
	if (code != GP_EXIT_OK)
		return code;
	if (opts->json)
		puts(gp_json_text(result));
	else
		gp_table_print(result, gp_screen_width(stdout, GP_TABLE_WIDTH), stdout);
	fprintf(opts->json ? stderr : stdout, "\nWrote %s (open it in a browser).\n",
		opts->out ? opts->out : path);
	return GP_EXIT_OK;
}

static int report_simulation(const struct gp_options *opts)
{
	struct json_object *result;
	struct gp_diag diag;
	char path[PATH_MAX];
	char *text;
	int code, r;

	snprintf(path, sizeof(path), "%s/result.json", opts->argv[0]);
	r = gp_file_read(path, &text);
	if (r < 0)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "%s: %s; give a folder that gpreempt sim --out wrote, or what gpreempt verify "
			       "wrote, by --old and --new",
			       path, strerror(-r));
	r = gp_result_parse(text, path, &result, &diag);
	if (r == 0) {
		code = report(result, opts->argv[0], opts);
		json_object_put(result);
	} else {
		code = gp_fail(GP_EXIT_BAD_INPUT, "%s", diag.text);
	}
	free(text);
	return code;
}

static int check(const struct gp_options *o)
{
	if (!o->old_dir != !o->new_dir)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "report: give both --old and --new; they may be one folder");
	if (o->old_dir && o->argc)
		return gp_fail(GP_EXIT_BAD_INPUT, "report: \"%s\" is one too many beside --old and --new",
			       o->argv[0]);
	if (!o->old_dir && !o->argc)
		return gp_fail(GP_EXIT_BAD_INPUT, "report: DIR is missing; see gpreempt report --help");
	return -1;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	char *words[argc + 1];
	struct gp_options opts;
	int code;

	memcpy(words, argv, (size_t)argc * sizeof(words[0])); /* parsing sorts them */
	words[argc] = NULL;
	code = gp_options_parse(verb, argc, argv, 0, 1, &opts);
	if (code < 0)
		code = check(&opts);
	if (code >= 0)
		return code;
	return opts.old_dir ? gp_python_run("gpreempt.verify.report", words + 1) : report_simulation(&opts);
}

const struct gp_verb gp_verb_report = {
	.name = "report",
	.summary = "make the page and the table again from a result",
	.usage = usage,
	.options = "old=DIR new=DIR out json",
	.run = run,
};
