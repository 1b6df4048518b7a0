// SPDX-License-Identifier: MIT
/*
 * The one symbol we stand in front of: ioctl.  LD_PRELOAD brings us there, as the first
 * library that has it.  Not LD_AUDIT: its libraries have a C library of their own, which
 * takes no part in the program's setuid().
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/old_glibc.h"

#define EXPORT __attribute__((visibility("default")))
#define NR_CREATE 2 /* of KFD_IOC_CREATE_QUEUE; uapi.h would bring a declaration of ioctl() with it */
#define KFD_TYPE ('K' << 8)
#define TYPE_MASK 0xff00u
#define NR_MASK 0xffu

static struct gp_own *own;

static int find_next(int fd, unsigned long request, void *arg);

static gp_ioctl_fn next_ioctl = find_next;

static int ask_kernel(int fd, unsigned long request, void *arg)
{
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static void resolve(void)
{
	gp_ioctl_fn found;

	*(void **)&found = dlsym(RTLD_NEXT, "ioctl"); /* how POSIX writes it */
	__atomic_store_n(&next_ioctl, found ? found : ask_kernel, __ATOMIC_RELEASE);
}

/* Another library's constructor called before ours ran. */
static int find_next(int fd, unsigned long request, void *arg)
{
	resolve();
	return next_ioctl(fd, request, arg);
}

static struct gp_own *get_own(void)
{
	struct gp_own *o = __atomic_load_n(&own, __ATOMIC_ACQUIRE), *other = NULL;

	if (next_ioctl == find_next)
		resolve();
	if (o || gp_own_new(next_ioctl, gp_agent_wake, NULL, &o) < 0)
		return o;
	if (__atomic_compare_exchange_n(&own, &other, o, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return o;
	gp_own_free(o);
	return other;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

/* 0 to 15, or -1. */
static int wanted_priority(void)
{
	const char *text = variable("AMD_QUEUE_PRIORITY");
	char *end;
	long value = strtol(text, &end, 10);

	return *text && !*end && value >= 0 && value <= 15 ? (int)value : -1;
}

static uint32_t wanted_class(const char *tag)
{
	const char *word = variable("GPREEMPT_CLASS");

	if (!strcmp(word, "online") || (!*word && !strcmp(tag, "ONLINE_AI")))
		return GP_CLASS_ONLINE;
	if (!strcmp(word, "offline") || (!*word && !strcmp(tag, "OFFLINE_AI")))
		return GP_CLASS_OFFLINE;
	return GP_CLASS_UNKNOWN;
}

static int call_driver(struct gp_own *o, int fd, unsigned long request, void *arg)
{
	int is_create = (request & NR_MASK) == NR_CREATE;
	const char *tag;
	int r, error;

	r = gp_own_call(o, fd, request, arg, is_create ? wanted_priority() : -1);
	error = errno;
	if (is_create && r >= 0 && gp_own_queues(o, NULL, 0)) { /* else it was not the driver's file */
		tag = variable("AMD_QUEUE_TAG");
		gp_agent_created(o, tag, wanted_class(tag));
	}
	errno = error;
	return r;
}

__attribute__((noinline, cold)) static int kfd_call(int fd, unsigned long request, void *arg)
{
	int before = errno, r;
	struct gp_own *o = gp_own_wants(request) ? get_own() : NULL;

	if (!o) {
		errno = before;
		return next_ioctl(fd, request, arg);
	}
	r = call_driver(o, fd, request, arg);
	if (r >= 0)
		errno = before;
	return r;
}

/* Three arguments, not "...": where they lie is the same, and nothing has to be saved. */
static int hook(int fd, unsigned long request, void *arg)
{
	if (__builtin_expect((request & TYPE_MASK) == KFD_TYPE, 0))
		return kfd_call(fd, request, arg);
	return next_ioctl(fd, request, arg);
}

int gp_agent_ioctl(int fd, unsigned long request, void *arg) __asm__("ioctl") EXPORT
	__attribute__((alias("hook")));

static void after_fork(void)
{
	struct gp_own *o = __atomic_load_n(&own, __ATOMIC_ACQUIRE);

	if (o)
		gp_own_forget(o);
	gp_agent_forget();
}

__attribute__((constructor)) static void begin(void)
{
	if (next_ioctl == find_next)
		resolve();
	gp_agent_configure();
	(void)pthread_atfork(NULL, NULL, after_fork);
}
