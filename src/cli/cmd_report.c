// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/wrap.h"
#include "study/files.h"
#include "study/output.h"

static const char usage[] = "usage: gpreempt report DIR [options]\n"
			    "\n"
			    "Makes the page and the table again from DIR/result.json.\n"
			    "\n"
			    "  --out FILE         where to write the page (DIR/index.html)\n"
			    "  --json             print the result, checked, not the table\n"
			    "\n"
			    "examples:\n"
			    "  gpreempt report gpreempt-demo\n"
			    "  gpreempt report mine --out /tmp/mine.html\n";

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

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	struct json_object *result;
	struct gp_options opts;
	struct gp_diag diag;
	char path[PATH_MAX];
	char *text;
	int code, r;

	code = gp_options_parse(verb, argc, argv, 1, 1, &opts);
	if (code >= 0)
		return code;
	snprintf(path, sizeof(path), "%s/result.json", opts.argv[0]);
	r = gp_file_read(path, &text);
	if (r < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s: %s; give a folder that gpreempt sim --out wrote", path,
			       strerror(-r));
	r = gp_result_parse(text, path, &result, &diag);
	if (r == 0) {
		code = report(result, opts.argv[0], &opts);
		json_object_put(result);
	} else {
		code = gp_fail(GP_EXIT_BAD_INPUT, "%s", diag.text);
	}
	free(text);
	return code;
}

const struct gp_verb gp_verb_report = {
	.name = "report",
	.summary = "make the page and the table again from a result",
	.usage = usage,
	.options = "out json",
	.run = run,
};
