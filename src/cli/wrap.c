// SPDX-License-Identifier: MIT
#include "cli/wrap.h"

#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NARROWEST 60
#define WIDEST 120

int gp_screen_width(FILE *out, int otherwise)
{
	struct winsize size;

	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return otherwise;
	return size.ws_col;
}

static int text_width(FILE *out)
{
	int width = gp_screen_width(out, GP_LINE);

	return width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
}

void gp_print_wrapped(const char *text, int indent, FILE *out)
{
	int column = indent, width = text_width(out);

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", len, text);
		column += len;
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

static int longest_line(const char *text)
{
	int longest = 0, len;

	for (; *text; text += len + (text[len] == '\n')) {
		len = (int)strcspn(text, "\n");
		longest = len > longest ? len : longest;
	}
	return longest;
}

/* A paragraph: the lines that begin with a letter. Returns what follows it. */
static const char *print_paragraph(const char *text, FILE *out)
{
	char words[1024] = "";
	size_t used = 0, len;

	for (; *text > ' ' && used < sizeof(words); text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%.*s", used ? " " : "",
					 (int)len, text);
	}
	gp_print_wrapped(words, 0, out);
	return text;
}

/* An option or more of its text, which stands to the right. */
static const char *print_option(const char *text, FILE *out)
{
	int len = (int)strcspn(text, "\n");
	char words[256];

	if (len <= GP_TEXT_AT || len <= text_width(out)) {
		fprintf(out, "%.*s\n", len, text);
	} else {
		fprintf(out, "%.*s", GP_TEXT_AT, text);
		snprintf(words, sizeof(words), "%.*s", len - GP_TEXT_AT, text + GP_TEXT_AT);
		gp_print_wrapped(words, GP_TEXT_AT, out);
	}
	return text + len + (text[len] == '\n');
}

void gp_print_usage(const char *usage, FILE *out)
{
	const char *examples = strstr(usage, "\nexamples:\n");

	if (gp_screen_width(out, INT_MAX) >= longest_line(usage)) {
		fputs(usage, out);
		return;
	}
	while (*usage && usage != examples)
		usage = *usage > ' ' ? print_paragraph(usage, out) : print_option(usage, out);
	fputs(usage, out);
}

void gp_print_argument(FILE *out, const char *before, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,+-";

	fputs(before, out);
	if (*text && !text[strspn(text, plain)]) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (const char[]){ *text, '\0' }, out);
	fputc('\'', out);
}
