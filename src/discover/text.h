/* SPDX-License-Identifier: MIT */
/* Reading text that others wrote: bounded, in one pass, nothing allocated per line. */
#ifndef GP_DISCOVER_TEXT_H
#define GP_DISCOVER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The rest of a line. The takers below move at, and only if they succeed. */
struct gp_span {
	const char *at, *end;
};

struct gp_span gp_span_of(const char *text);
size_t gp_span_len(const struct gp_span *s);
void gp_span_trim(struct gp_span *s);                  /* spaces at both ends */
int gp_span_take(struct gp_span *s, const char *word); /* 1: it began with the word, in any case of letters */
int gp_span_find(struct gp_span *s, const char *word); /* 1: at is now behind the first such word */
int gp_span_decimal(struct gp_span *s, uint64_t *ret); /* 1: a number that fits */
int gp_span_hex(struct gp_span *s, uint64_t *ret);     /* the same, without or with 0x */
int gp_span_number(struct gp_span *s, uint64_t *ret);  /* decimal, or hex if it starts with 0x */
int gp_span_u32(struct gp_span *s, uint32_t *ret);     /* gp_span_number() that fits in 32 bits */
int gp_span_split(struct gp_span *s, char by,
		  struct gp_span *ret); /* 1: the part before by; 0: s is used up */
void gp_span_copy(const struct gp_span *s, char *to, size_t size); /* cut to fit, and harmless: base/text.h */
int gp_span_copy_whole(const struct gp_span *s, char *to,
		       size_t size); /* 0: too long, or no text; to is empty */

#define GP_HEX_WORDS 8 /* in a line of the kernel's hex dumps, at most */

/* "    00000200: 003e3000 ...", of seq_hex_dump(). The number of words; 0: the line is no such line. */
uint32_t gp_hex_line(const char *line, size_t len, uint32_t *ret_offset, uint32_t *ret_words);

/* A file, or a piece of memory, line by line. */
struct gp_lines {
	int fd; /* -1: memory */
	int error;
	char *buffer;
	size_t size, start, end;
	uint32_t count;   /* lines given or skipped so far */
	uint32_t dropped; /* lines longer than the buffer: never given */
	uint8_t at_end,
		partial; /* partial: it ended without a newline; what followed the last one is not given */
};

int gp_lines_open(struct gp_lines *in, int fd); /* takes the descriptor, on failure too. -ENOMEM */
void gp_lines_memory(struct gp_lines *in, const void *text, size_t size);
void gp_lines_close(struct gp_lines *in);
int gp_lines_next(struct gp_lines *in, struct gp_span *ret); /* 1: a whole line, valid until the next call */
/* The next n bytes without taking them, or NULL if there are not so many or they do not fit in the buffer. */
const char *gp_lines_peek(struct gp_lines *in, size_t n);
void gp_lines_skip(struct gp_lines *in, size_t n, uint32_t lines); /* n: of bytes that were peeked at */

/* A small file, whole, with a NUL behind it. The length, or -errno; what does not fit is cut off. */
int gp_read_at(int dir, const char *path, char *buffer, size_t size);
int gp_read_fd(int fd, char *buffer, size_t size);            /* the same of one that is open, and stays so */
int gp_read_u64_at(int dir, const char *path, uint64_t *ret); /* a decimal number. -EINVAL: something else */
int gp_open_at(int dir, const char *path, int flags);         /* the descriptor, or -errno */

#endif
