// SPDX-License-Identifier: MIT
#include "policy/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The least that says which version it is of, and its name. */
#define LEAST_SIZE (offsetof(struct gp_policy_ops, name) + sizeof(const char *))

struct reason {
	char *text;
	size_t size;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct reason *why, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why->text, why->size, format, args);
	va_end(args);
	return r;
}

/* dlerror() begins with the path, which the caller shows by itself. */
static int refuse_object(struct reason *why, const char *path)
{
	const char *text = dlerror();
	size_t len = strlen(path);

	if (!strncmp(text, path, len) && text[len] == ':')
		text += len + 1 + strspn(text + len + 1, " ");
	return refuse(why, -ENOEXEC, "%s; build it with cc -shared -fPIC", text);
}

static int check(const struct gp_policy_ops *ops, struct reason *why)
{
	if (!ops)
		return refuse(why, -ENOENT, "there is no gp_policy in it; see gpreempt/policy.h");
	if (ops->size < LEAST_SIZE)
		return refuse(why, -EINVAL, "its table has %zu bytes; write .size = sizeof(gp_policy)",
			      ops->size);
	if (ops->abi != GP_POLICY_ABI)
		return refuse(why, -EPROTO,
			      "it is of ABI %u and this gpreempt of %u; build it with this one's policy.h",
			      ops->abi, GP_POLICY_ABI);
	if (!ops->name || !ops->name[0])
		return refuse(why, -EINVAL, "it has no name; write .name = \"mine\"");
	return 0;
}

static int load(const char *path, const struct gp_policy_ops **ret, struct reason *why)
{
	const struct gp_policy_ops *ops;
	void *object;
	int r;

	if (access(path, R_OK) < 0)
		return refuse(why, -errno, "%s; give a policy's shared object, as in ./mine.so",
			      strerror(errno));
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		return refuse_object(why, path);
	ops = dlsym(object, "gp_policy");
	r = check(ops, why);
	if (r < 0)
		(void)dlclose(object);
	else
		*ret = ops;
	return r;
}

int gp_policy_load(const char *path, const struct gp_policy_ops **ret, char *text, size_t size)
{
	struct reason why = { .text = text, .size = size };
	char here[PATH_MAX];

	if (strchr(path, '/'))
		return load(path, ret, &why);
	/* As it is, dlopen() would look for it where libraries are. */
	if (snprintf(here, sizeof(here), "./%s", path) >= (int)sizeof(here))
		return refuse(&why, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
	return load(here, ret, &why);
}
