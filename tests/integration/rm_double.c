// SPDX-License-Identifier: MIT
/*
 * Preloaded behind the agent: an ioctl() that answers as NVIDIA's resource manager would for the file that
 * GPREEMPT_NVIDIACTL names, and passes on everything else.  RM_DOUBLE_LOG: a file that gets a line for each
 * change: how many channels were disabled or enabled, which slice a group has.  RM_DOUBLE_REFUSES: numbers of
 * controls that the driver does not have, with commas between them; behind a number may stand "=STATUS".
 * RM_DOUBLE_TAKES: such a list of how many us a control takes; RM_DOUBLE_FAILS: how often of a thousand times
 * it fails, and half of these it is done all the same.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../unit/fake_rm.h"

static int owner; /* clients are a process's: a child has none */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int is_driver(int fd)
{
	const char *path = getenv("GPREEMPT_NVIDIACTL");
	struct stat a, b;

	return path && stat(path, &a) == 0 && fstat(fd, &b) == 0 && S_ISCHR(b.st_mode) &&
	       a.st_rdev == b.st_rdev;
}

static void note(const struct nvrm_control *c)
{
	const struct nvrm_disable_channels *channels = (const void *)(uintptr_t)c->params;
	const struct nvrm_timeslice *slice = (const void *)(uintptr_t)c->params;
	const char *path = getenv("RM_DOUBLE_LOG");
	int log = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (log < 0)
		return;
	if (c->command == NVRM_DISABLE_CHANNELS)
		dprintf(log, "%s %u\n", channels->disable ? "disable" : "enable", channels->n);
	else if (c->command == NVRM_SET_TIMESLICE)
		dprintf(log, "slice %llu\n", (unsigned long long)slice->us);
	close(log);
}

/* What stands behind the control's number in a list; usual: where nothing does; 0: it is not in the list. */
static uint32_t listed(const char *name, uint32_t command, uint32_t usual)
{
	const char *at = getenv(name);

	while (at) {
		uint32_t value = usual, number;
		char *end;

		number = (uint32_t)strtoul(at, &end, 0);
		if (*end == '=')
			value = (uint32_t)strtoul(end + 1, &end, 0);
		if (number == command)
			return value;
		at = *end == ',' ? end + 1 : NULL;
	}
	return 0;
}

static int answer(int fd, unsigned long request, void *args)
{
	int is_control = (unsigned int)request == NVRM_IOC_CONTROL && args, r;
	const struct nvrm_control *c = args;

	if (owner != getpid()) {
		fake_rm_reset();
		srandom((unsigned int)getpid());
		pthread_mutex_init(&turn, NULL);
	}
	owner = getpid();
	if (is_control)
		usleep(listed("RM_DOUBLE_TAKES", c->command, 0));
	pthread_mutex_lock(&turn);
	rm.fail_command = is_control ? c->command : RM_ANY;
	rm.fail_status = is_control ? listed("RM_DOUBLE_REFUSES", c->command, NVRM_NOT_SUPPORTED) : NVRM_OK;
	rm.fails_late = 0;
	if (is_control && (uint32_t)(random() % 1000) < listed("RM_DOUBLE_FAILS", c->command, 0)) {
		rm.fail_status = NVRM_TIMEOUT;
		rm.fails_late = random() % 2;
	}
	rm.fail_times = rm.fail_status != NVRM_OK;
	r = fake_rm_ioctl(fd, request, args);
	pthread_mutex_unlock(&turn);
	if (r == 0 && (unsigned int)request == NVRM_IOC_CONTROL && c->status == NVRM_OK)
		note(c);
	return r;
}

/* For the program: how many of its channels are disabled, and how many groups have a slice that is not the
 * usual one. */
void rm_double_look(uint32_t *ret_disabled, uint32_t *ret_short);

void rm_double_look(uint32_t *ret_disabled, uint32_t *ret_short)
{
	*ret_disabled = *ret_short = 0;
	pthread_mutex_lock(&turn);
	for (uint32_t i = 0; i < RM_MOST; i++) {
		const struct fake_object *o = &rm.objects[i];

		*ret_disabled += o->handle && o->disabled;
		*ret_short += o->handle && o->object_class == NVRM_GROUP && o->slice != RM_DEFAULT_SLICE;
	}
	pthread_mutex_unlock(&turn);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *args;

	va_start(list, request);
	args = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) == NVRM_TYPE && is_driver(fd))
		return answer(fd, request, args);
	return (int)syscall(SYS_ioctl, fd, request, args);
}
