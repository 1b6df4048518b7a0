// SPDX-License-Identifier: MIT
/*
 * The one symbol we stand in front of: ioctl.  LD_PRELOAD brings us there, as the first
 * library that has it.  Not LD_AUDIT: its libraries have a C library of their own, which
 * takes no part in the program's setuid().
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/old_glibc.h"

#define EXPORT __attribute__((visibility("default")))

#define TYPES 256 /* of ioctls */

/*
 * What pthread_atfork() calls in glibc.  Another C library has none, musl for one: we are loaded there and
 * do nothing.
 */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso)
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static struct gp_own *owns[TYPES]; /* each vendor's, as in gp_own_vendors; NULL: it has had no call */

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

static unsigned int type_of(unsigned long request)
{
	return (unsigned int)(request >> 8) & (TYPES - 1);
}

static struct gp_own *get_own(const struct gp_own_ops *ops, unsigned long request)
{
	struct gp_own **at = &owns[type_of(request)];
	struct gp_own *own = __atomic_load_n(at, __ATOMIC_ACQUIRE), *other = NULL;

	if (next_ioctl == find_next)
		resolve();
	if (own || ops->make(next_ioctl, gp_agent_wake, NULL, &own) < 0)
		return own;
	if (__atomic_compare_exchange_n(at, &other, own, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return own;
	ops->free(own);
	return other;
}

static int call_driver(const struct gp_own_ops *ops, struct gp_own *own, int fd, unsigned long request,
		       void *arg)
{
	int is_create = ops->wants(request) == GP_OWN_CREATE;
	struct gp_claim who;
	int r, error;

	r = ops->call(own, fd, request, arg, is_create ? gp_environment_priority() : -1);
	error = errno;
	if (is_create && r >= 0 && ops->queues(own, NULL, 0)) { /* else it was not the driver's file */
		gp_environment_claim(getenv, &who);
		gp_agent_created(ops, own, &who);
	}
	errno = error;
	return r;
}

__attribute__((noinline, cold)) static int vendor_call(int fd, unsigned long request, void *arg)
{
	const struct gp_own_ops *ops = gp_own_vendors[type_of(request)];
	int before = errno, r;
	struct gp_own *own = __register_atfork && ops->wants(request) ? get_own(ops, request) : NULL;

	if (!own) {
		errno = before;
		return next_ioctl(fd, request, arg);
	}
	r = call_driver(ops, own, fd, request, arg);
	if (r >= 0)
		errno = before;
	return r;
}

/* Three arguments, not "...": where they lie is the same, and nothing has to be saved. */
static int hook(int fd, unsigned long request, void *arg)
{
	if (__builtin_expect(gp_own_vendors[type_of(request)] != NULL, 0))
		return vendor_call(fd, request, arg);
	return next_ioctl(fd, request, arg);
}

int gp_agent_ioctl(int fd, unsigned long request, void *arg) __asm__("ioctl") EXPORT
	__attribute__((alias("hook")));

/* For libgpreempt-level.so, if it is in this process: level/api.h. */
uint64_t gpreempt_agent_ring(void) EXPORT;
void gpreempt_agent_rang(void) EXPORT;
int gpreempt_agent_queues(void) EXPORT;

uint64_t gpreempt_agent_ring(void)
{
	return gp_own_ring;
}

void gpreempt_agent_rang(void)
{
	gp_agent_rang();
}

int gpreempt_agent_queues(void)
{
	for (unsigned int i = 0; i < TYPES; i++) {
		struct gp_own *own = __atomic_load_n(&owns[i], __ATOMIC_ACQUIRE);

		if (own && gp_own_vendors[i]->queues(own, NULL, 0))
			return 1;
	}
	return 0;
}

static void after_fork(void)
{
	for (unsigned int i = 0; i < TYPES; i++)
		if (owns[i])
			gp_own_vendors[i]->forget(owns[i]);
	gp_agent_forget();
}

__attribute__((constructor)) static void begin(void)
{
	if (next_ioctl == find_next)
		resolve();
	if (!__register_atfork)
		return;
	gp_agent_configure();
	(void)__register_atfork(NULL, NULL, after_fork, &__dso_handle);
}
