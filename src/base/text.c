// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <stdint.h>
#include <string.h>

/* No characters: above all of Unicode's. */
#define BAD UINT32_MAX
#define CUT (UINT32_MAX - 1)

/* How many bytes a character that begins so has; 0: none does. C0, C1 and F5 on are overlong or too high. */
static size_t length_of(unsigned char first)
{
	if (first < 0x80)
		return 1;
	return first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/* The number of the character of len bytes; CUT if the end comes within it, BAD if it is none. */
static uint32_t decode(const unsigned char *at, const unsigned char *end, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t code = len == 1 ? at[0] : at[0] & (0x7fu >> len);

	for (size_t i = 1; i < len; i++) {
		if (at + i == end)
			return CUT;
		if ((at[i] & 0xc0) != 0x80)
			return BAD;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (!len || code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return BAD;
	return code;
}

static int is_within(uint32_t code, uint32_t first, uint32_t last)
{
	return code >= first && code <= last;
}

/* Controls, the ends of lines and paragraphs, Unicode's Bidi_Control, and what nobody sees: a name with it
 * looks like another's, and terminals disagree on how wide it makes its neighbours. */
static int misleads(uint32_t code)
{
	return code < 0x20 || is_within(code, 0x7f, 0x9f) || code == 0x61c ||
	       is_within(code, 0x200b, 0x200f) || is_within(code, 0x2028, 0x202e) ||
	       is_within(code, 0x2060, 0x2064) || is_within(code, 0x2066, 0x2069) || code == 0xfeff;
}

size_t gp_text_copy(char *to, size_t size, const char *from, size_t len)
{
	const unsigned char *at = (const unsigned char *)from, *end = at + len;
	size_t used = 0;

	while (at < end) {
		size_t n = length_of(*at);
		uint32_t code = decode(at, end, n);
		int shown = code != BAD && !misleads(code);

		if (code == CUT || used + (shown ? n : 1) >= size)
			break;
		if (shown)
			memmove(to + used, at, n);
		else
			to[used] = '?';
		used += shown ? n : 1;
		at += code == BAD ? 1 : n;
	}
	to[used] = '\0';
	return used;
}

void gp_text_clean(char *text)
{
	size_t len = strlen(text);

	(void)gp_text_copy(text, len + 1, text, len);
}

/* Unicode's East Asian Wide and Fullwidth, and emoji, by their blocks. */
static int is_wide(uint32_t code)
{
	return is_within(code, 0x1100, 0x115f) || is_within(code, 0x2e80, 0xa4cf) ||
	       is_within(code, 0xac00, 0xd7a3) || is_within(code, 0xf900, 0xfaff) ||
	       is_within(code, 0xfe30, 0xfe6f) || is_within(code, 0xff00, 0xff60) ||
	       is_within(code, 0xffe0, 0xffe6) || is_within(code, 0x1f300, 0x1faff) ||
	       is_within(code, 0x20000, 0x3fffd);
}

static int joins(uint32_t code)
{
	return is_within(code, 0x300, 0x36f) || is_within(code, 0x20d0, 0x20ff) ||
	       is_within(code, 0xfe00, 0xfe0f);
}

/* As many characters as have room, their bytes and their columns. */
static size_t measure(const char *text, size_t room, size_t *ret_columns)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);

	*ret_columns = 0;
	while (at < end) {
		size_t n = length_of(*at), columns;
		uint32_t code = decode(at, end, n);

		columns = joins(code) ? 0 : is_wide(code) ? 2 : 1;
		if (*ret_columns + columns > room)
			break;
		*ret_columns += columns;
		at += code == BAD || code == CUT ? 1 : n;
	}
	return (size_t)(at - (const unsigned char *)text);
}

size_t gp_text_width(const char *text)
{
	size_t columns;

	(void)measure(text, SIZE_MAX, &columns);
	return columns;
}

size_t gp_text_fit(const char *text, size_t columns)
{
	size_t used;

	return measure(text, columns, &used);
}
