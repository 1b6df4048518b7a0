/* SPDX-License-Identifier: MIT */
/* A test program's output: one line for each thing it saw, or did not. */
#ifndef GP_TESTS_KERNEL_TAP_H
#define GP_TESTS_KERNEL_TAP_H

#include <stdarg.h>
#include <stdio.h>

static int tap_number, tap_failed;

/* ok(condition, "what it proves"): returns the condition. */
__attribute__((format(printf, 2, 3))) static inline int ok(int condition, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", condition ? "" : "not ", ++tap_number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	tap_failed += !condition;
	return condition;
}

__attribute__((format(printf, 1, 2))) static inline void note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

/* Last: says how many there were. */
static inline int tap_done(void)
{
	printf("1..%d\n", tap_number);
	return tap_failed != 0;
}

#endif
