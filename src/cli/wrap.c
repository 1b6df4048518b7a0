// SPDX-License-Identifier: MIT
#include "cli/wrap.h"

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
