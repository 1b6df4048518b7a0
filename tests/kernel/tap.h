/* SPDX-License-Identifier: MIT */
/* A test program's output: one line for each thing it saw, or did not. */
#ifndef GP_TESTS_KERNEL_TAP_H
#define GP_TESTS_KERNEL_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* What it would prove, and why it is left out. */
static inline void skip(const char *what, const char *why)
{
	printf("ok %d - %s # SKIP %s\n", ++tap_number, what, why);
	fflush(stdout);
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

/* In a process of its own: what it does to itself is over with it. */
static inline void tap_in_child(void (*what)(void))
{
	int *counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	    status = -1;
	pid_t pid;

	counts[0] = tap_number;
	counts[1] = tap_failed;
	pid = fork();
	if (pid == 0) {
		what();
		counts[0] = tap_number;
		counts[1] = tap_failed;
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	tap_number = counts[0];
	tap_failed = counts[1];
	munmap(counts, 4096);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process can exit");
}

/* Last: says how many there were. */
static inline int tap_done(void)
{
	printf("1..%d\n", tap_number);
	return tap_failed != 0;
}

#endif
