// SPDX-License-Identifier: MIT
#include "discover/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"

#define BUFFER_SIZE (512 * 1024)

/* 1 + value of a hex digit, 0 for anything else. */
static const uint8_t digits[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static int is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct gp_span gp_span_of(const char *text)
{
	return (struct gp_span){ text, text + strlen(text) };
}

size_t gp_span_len(const struct gp_span *s)
{
	return (size_t)(s->end - s->at);
}

void gp_span_trim(struct gp_span *s)
{
	while (s->at < s->end && is_space(*s->at))
		s->at++;
	while (s->at < s->end && is_space(s->end[-1]))
		s->end--;
}

int gp_span_take(struct gp_span *s, const char *word)
{
	size_t len = strlen(word);

	if (gp_span_len(s) < len || strncasecmp(s->at, word, len))
		return 0;
	s->at += len;
	return 1;
}

int gp_span_find(struct gp_span *s, const char *word)
{
	size_t len = strlen(word);
	const char *found = memmem(s->at, gp_span_len(s), word, len);

	if (!found)
		return 0;
	s->at = found + len;
	return 1;
}

static int take_digits(struct gp_span *s, uint64_t base, uint64_t *ret)
{
	const char *p = s->at;
	uint64_t value = 0;

	for (; p < s->end; p++) {
		uint64_t digit = digits[(unsigned char)*p];

		if (!digit || digit > base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit - 1, &value))
			return 0;
	}
	if (p == s->at)
		return 0;
	s->at = p;
	*ret = value;
	return 1;
}

int gp_span_decimal(struct gp_span *s, uint64_t *ret)
{
	return take_digits(s, 10, ret);
}

int gp_span_hex(struct gp_span *s, uint64_t *ret)
{
	struct gp_span rest = *s;

	(void)gp_span_take(&rest, "0x");
	if (!take_digits(&rest, 16, ret))
		return 0;
	*s = rest;
	return 1;
}

int gp_span_number(struct gp_span *s, uint64_t *ret)
{
	if (gp_span_len(s) > 2 && s->at[0] == '0' && (s->at[1] | 0x20) == 'x')
		return gp_span_hex(s, ret);
	return gp_span_decimal(s, ret);
}

int gp_span_u32(struct gp_span *s, uint32_t *ret)
{
	struct gp_span rest = *s;
	uint64_t value;

	if (!gp_span_number(&rest, &value) || value > UINT32_MAX)
		return 0;
	*s = rest;
	*ret = (uint32_t)value;
	return 1;
}

int gp_span_split(struct gp_span *s, char by, struct gp_span *ret)
{
	const char *found;

	if (s->at >= s->end)
		return 0;
	found = memchr(s->at, by, gp_span_len(s));
	ret->at = s->at;
	ret->end = found ? found : s->end;
	s->at = found ? found + 1 : s->end;
	return 1;
}

void gp_span_copy(const struct gp_span *s, char *to, size_t size)
{
	(void)gp_text_copy(to, size, s->at, gp_span_len(s));
}

int gp_span_copy_whole(const struct gp_span *s, char *to, size_t size)
{
	if (gp_span_len(s) < size && gp_text_copy(to, size, s->at, gp_span_len(s)) == gp_span_len(s))
		return 1;
	to[0] = '\0';
	return 0;
}

/* Exactly eight hex digits. */
static int take_word(const char *p, uint32_t *ret)
{
	uint32_t value = 0;
	uint32_t bad = 0;

	for (int i = 0; i < 8; i++) {
		uint32_t digit = digits[(unsigned char)p[i]];

		bad |= !digit;
		value = value << 4 | ((digit - 1) & 15);
	}
	*ret = value;
	return !bad;
}

uint32_t gp_hex_line(const char *line, size_t len, uint32_t *ret_offset, uint32_t *ret_words)
{
	const char *end = line + len;
	uint32_t n = 0;

	while (line < end && *line == ' ')
		line++;
	if (end - line < 9 || line[8] != ':' || !take_word(line, ret_offset))
		return 0;
	line += 9;
	while (n < GP_HEX_WORDS && end - line >= 9 && *line == ' ' && take_word(line + 1, &ret_words[n])) {
		n++;
		line += 9;
	}
	return line == end ? n : 0;
}

int gp_lines_open(struct gp_lines *in, int fd)
{
	*in = (struct gp_lines){ .fd = fd, .size = BUFFER_SIZE };
	in->buffer = malloc(BUFFER_SIZE);
	if (in->buffer)
		return 0;
	close(fd);
	return -ENOMEM;
}

void gp_lines_memory(struct gp_lines *in, const void *text, size_t size)
{
	*in = (struct gp_lines){ .fd = -1, .buffer = (char *)text, .size = size, .end = size, .at_end = 1 };
}

void gp_lines_close(struct gp_lines *in)
{
	if (in->fd < 0)
		return;
	close(in->fd);
	free(in->buffer);
}

/* More bytes behind what is there; 0 if there are none, or no room. */
static int fill(struct gp_lines *in)
{
	ssize_t n;

	if (in->at_end)
		return 0;
	if (in->start) {
		memmove(in->buffer, in->buffer + in->start, in->end - in->start);
		in->end -= in->start;
		in->start = 0;
	}
	if (in->end == in->size)
		return 0;
	do {
		n = read(in->fd, in->buffer + in->end, in->size - in->end);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		in->end += (size_t)n;
		return 1;
	}
	in->at_end = 1;
	if (n < 0)
		in->error = -errno;
	return 0;
}

/* A line that fills the whole buffer is no line we know. */
static int drop_long_line(struct gp_lines *in)
{
	const char *newline;

	in->dropped++;
	do {
		in->start = in->end = 0;
		if (!fill(in))
			return 0;
		newline = memchr(in->buffer, '\n', in->end);
	} while (!newline);
	in->start = (size_t)(newline + 1 - in->buffer);
	in->count++;
	return 1;
}

int gp_lines_next(struct gp_lines *in, struct gp_span *ret)
{
	size_t seen = 0; /* bytes known to hold no newline */

	for (;;) {
		const char *from = in->buffer + in->start;
		size_t have = in->end - in->start;
		const char *newline = have > seen ? memchr(from + seen, '\n', have - seen) : NULL;

		if (newline) {
			*ret = (struct gp_span){ from, newline };
			in->start = (size_t)(newline + 1 - in->buffer);
			in->count++;
			return 1;
		}
		seen = have;
		if (fill(in))
			continue;
		if (in->at_end)
			break;
		if (!drop_long_line(in))
			break;
		seen = 0;
	}
	in->partial = in->end > in->start;
	return 0;
}

const char *gp_lines_peek(struct gp_lines *in, size_t n)
{
	while (in->end - in->start < n)
		if (!fill(in))
			return NULL;
	return in->buffer + in->start;
}

void gp_lines_skip(struct gp_lines *in, size_t n, uint32_t lines)
{
	in->start += n;
	in->count += lines;
}

int gp_open_at(int dir, const char *path, int flags)
{
	int fd;

	if (dir < 0 && dir != AT_FDCWD)
		return dir; /* why the folder could not be opened */
	do {
		fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int gp_read_fd(int fd, char *buffer, size_t size)
{
	size_t have = 0;

	while (have < size - 1) {
		ssize_t n = read(fd, buffer + have, size - 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	buffer[have] = '\0';
	return (int)have;
}

int gp_read_at(int dir, const char *path, char *buffer, size_t size)
{
	int r, fd = gp_open_at(dir, path, 0);

	if (fd < 0)
		return fd;
	r = gp_read_fd(fd, buffer, size);
	close(fd);
	return r;
}

/* One read: the kernel gives a whole attribute, and these are opened by the hundred thousand. */
int gp_read_u64_at(int dir, const char *path, uint64_t *ret)
{
	char text[32];
	struct gp_span s;
	ssize_t n;
	int fd = gp_open_at(dir, path, 0);
	int r = 0;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		r = -errno;
	close(fd);
	if (r < 0)
		return r;
	s = (struct gp_span){ text, text + n };
	if (n && text[n - 1] == '\n')
		s.end--;
	return gp_span_decimal(&s, ret) && s.at == s.end ? 0 : -EINVAL;
}
