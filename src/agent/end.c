// SPDX-License-Identifier: MIT
/*
 * How a program ends that ends thread by thread.  Its last thread ends the process, by exit(0) if the C
 * library ended it and else with what the first thread left; with ours in the process it is not the last.
 * Nothing tells us that the others have gone, so we look: one system call while the first thread is there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/internal.h"
#include "base/old_glibc.h"
#include "base/file.h"

#define MS 1000000l

/* The kernel takes from a thread that exits the list that the C library gave it when it began. */
static int has_first_thread(void)
{
	void *list = NULL;
	size_t size;

	return syscall(SYS_get_robust_list, getpid(), &list, &size) < 0 || list;
}

/* What /proc says of the first thread: its state, how many there are with it, and what it exited with. */
struct first {
	char state;
	unsigned int threads;
	int code;
};

static int read_first(struct first *ret)
{
	char text[2048];
	const char *name_end = strrchr(gp_file_text("/proc/self/stat", text, sizeof(text)), ')');

	if (!name_end ||
	    sscanf(name_end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %u",
		   &ret->state, &ret->threads) != 2)
		return -1;
	ret->code = atoi(strrchr(name_end, ' '));
	return 0;
}

/* Whether our thread is the only one that lives. Where /proc cannot tell, as good as: the first one's end is
 * what makes us go. */
int gp_agent_is_alone(void)
{
	struct first first;

	if (has_first_thread())
		return 0;
	if (read_first(&first) < 0)
		return 1;
	return (first.state == 'Z' || first.state == 'X') && first.threads <= 2; /* that one and ours */
}

struct heir {
	gp_signals mask;
	long before; /* the thread that it must outlive */
};

static void *outlive(void *arg)
{
	static const struct timespec pause = { .tv_nsec = MS };
	struct heir *heir = arg;
	struct first first;

	while (syscall(SYS_tgkill, getpid(), heir->before, 0) == 0)
		(void)nanosleep(&pause, NULL);
	gp_guard_unblock(heir->mask);
	/* Not by the C library, then: to the kernel what the last thread exits with is the process's. */
	if (read_first(&first) == 0 && first.state == 'Z' && first.threads <= 2 && first.code)
		(void)syscall(SYS_exit, first.code >> 8);
	return NULL;
}

/*
 * The last thread is the one in which the program's exit handlers run: it shall have the stack and the
 * signals that the program's threads have, which ours has not.
 */
void gp_agent_hand_over(gp_signals mask)
{
	static struct heir heir;
	pthread_attr_t attr;
	pthread_t thread;

	heir = (struct heir){ .mask = mask, .before = syscall(SYS_gettid) };
	if (pthread_attr_init(&attr))
		return;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_create(&thread, &attr, outlive, &heir); /* without it, ours is the last */
	(void)pthread_attr_destroy(&attr);
}
