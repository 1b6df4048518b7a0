/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's resource manager, made of a table.  Calls may come from several threads.  As the real one it takes
 * a client's calls by the open file alone that made it; which file that is, its flags say, which duplicates
 * share.
 */
#ifndef GP_TESTS_FAKE_RM_H
#define GP_TESTS_FAKE_RM_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "backend/nvrm/uapi.h"

#define RM_FILE "/dev/full" /* a character device that nothing else here opens */
#define RM_MOST 2048
#define RM_FIRST_CLIENT 0xc1d00000u
#define RM_DEFAULT_SLICE 2048u
#define RM_ANY 0u /* in the place of a control's number */

struct fake_object {
	uint32_t client, handle, parent, object_class;
	uint32_t disabled; /* of a channel */
	uint32_t gpu;      /* of a device, and what is below it */
	uint64_t slice;    /* of a group */
	int file;          /* of a client */
};

static struct {
	pthread_mutex_t lock;
	struct fake_object objects[RM_MOST];
	uint32_t room; /* for objects; 0: as many as there are places */
	uint32_t last_client, last_handle;
	uint32_t controls, switches, largest; /* calls: of controls, to enable and disable; channels in one */
	uint32_t fail_command, fail_status, fail_times, fails_late; /* late: it is done all the same */
	int fail_errno;
	void (*before)(unsigned long request, const void *args); /* with no lock held */
} rm;

static inline int fake_file(int fd)
{
	return fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND);
}

static struct fake_object *fake_find(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < RM_MOST; i++)
		if (rm.objects[i].handle && rm.objects[i].client == client && rm.objects[i].handle == handle)
			return &rm.objects[i];
	return NULL;
}

static uint32_t fake_check(int fd, uint32_t client)
{
	const struct fake_object *o = fake_find(client, client);

	return o && o->file == fake_file(fd) ? NVRM_OK : NVRM_INVALID_CLIENT;
}

static struct fake_object *fake_place(void)
{
	uint32_t room = rm.room ? rm.room : RM_MOST;

	for (uint32_t i = 0; i < room; i++)
		if (!rm.objects[i].handle)
			return &rm.objects[i];
	return NULL;
}

static uint32_t fake_put(int fd, uint32_t client, uint32_t parent, uint32_t *handle, uint32_t object_class)
{
	const struct fake_object *up = fake_find(client, parent);
	struct fake_object *o = fake_place();

	if (!o)
		return 0x1a; /* NV_ERR_INSUFFICIENT_RESOURCES */
	if (!*handle)
		*handle = 0x5c000000 + ++rm.last_handle;
	if (fake_find(client, *handle))
		return 0x19; /* NV_ERR_INSERT_DUPLICATE_NAME */
	*o = (struct fake_object){ .client = client,
				   .handle = *handle,
				   .parent = parent,
				   .object_class = object_class,
				   .gpu = up ? up->gpu : 0,
				   .slice = RM_DEFAULT_SLICE,
				   .file = fake_file(fd) };
	return NVRM_OK;
}

static uint32_t fake_alloc(int fd, struct nvrm_alloc *a)
{
	uint32_t status;

	if (a->object_class == NVRM_ROOT_CLIENT || a->object_class == NVRM_ROOT) {
		if (!a->object)
			a->object = RM_FIRST_CLIENT + ++rm.last_client;
		return fake_put(fd, a->object, 0, &a->object, a->object_class);
	}
	status = fake_check(fd, a->client);
	if (status == NVRM_OK && !fake_find(a->client, a->parent))
		status = 0x36; /* NV_ERR_INVALID_OBJECT_PARENT */
	if (status == NVRM_OK)
		status = fake_put(fd, a->client, a->parent, &a->object, a->object_class);
	if (status == NVRM_OK && a->object_class == NVRM_DEVICE) /* deviceId of NV0080_ALLOC_PARAMETERS */
		fake_find(a->client, a->object)->gpu = a->params ? *(uint32_t *)(uintptr_t)a->params : 0;
	return status;
}

static void fake_drop(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < RM_MOST; i++) {
		struct fake_object *o = &rm.objects[i];

		if (!o->handle || o->client != client || o->handle == o->client)
			continue;
		if (o->parent == handle)
			fake_drop(client, o->handle);
	}
	memset(fake_find(client, handle), 0, sizeof(struct fake_object));
}

static uint32_t fake_free(int fd, const struct nvrm_free *f)
{
	uint32_t status = fake_check(fd, f->client);

	if (status == NVRM_OK && !fake_find(f->client, f->object))
		status = NVRM_INVALID_OBJECT_HANDLE;
	if (status == NVRM_OK)
		fake_drop(f->client, f->object);
	return status;
}

static uint32_t fake_dup(int fd, struct nvrm_dup *d)
{
	const struct fake_object *from = fake_find(d->client_from, d->object_from);
	uint32_t status = fake_check(fd, d->client);

	if (status != NVRM_OK)
		return status;
	if (!from)
		return NVRM_INVALID_OBJECT_HANDLE;
	status = fake_put(fd, d->client, d->parent, &d->object, from->object_class);
	if (status == NVRM_OK)
		fake_find(d->client, d->object)->gpu = from->gpu;
	return status;
}

static uint32_t fake_switch(const struct nvrm_disable_channels *args)
{
	rm.switches++;
	if (args->n > rm.largest)
		rm.largest = args->n;
	if (!args->n || args->n > NVRM_MOST_CHANNELS || args->only_scheduling || args->rewind || args->event)
		return NVRM_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < args->n; i++)
		if (!fake_find(args->client[i], args->channel[i]))
			return NVRM_INVALID_CHANNEL;
	for (uint32_t i = 0; i < args->n; i++)
		fake_find(args->client[i], args->channel[i])->disabled = args->disable;
	return NVRM_OK;
}

static uint32_t fake_command(struct fake_object *o, const struct nvrm_control *c)
{
	void *params = (void *)(uintptr_t)c->params;
	uint32_t is_group = o->object_class == NVRM_GROUP, is_subdevice = o->object_class == NVRM_SUBDEVICE;

	if (is_subdevice && c->command == NVRM_GET_ID && c->params_size == sizeof(struct nvrm_id))
		((struct nvrm_id *)params)->gpu = o->gpu;
	else if (is_subdevice && c->command == NVRM_DISABLE_CHANNELS &&
		 c->params_size == sizeof(struct nvrm_disable_channels))
		return fake_switch(params);
	else if (is_group && c->command == NVRM_SET_TIMESLICE)
		o->slice = ((const struct nvrm_timeslice *)params)->us;
	else if (is_group && c->command == NVRM_GET_TIMESLICE)
		((struct nvrm_timeslice *)params)->us = o->slice;
	else
		return NVRM_NOT_SUPPORTED;
	return NVRM_OK;
}

static uint32_t fake_control(int fd, const struct nvrm_control *c)
{
	int fails = rm.fail_times && (rm.fail_command == RM_ANY || rm.fail_command == c->command);
	uint32_t status = fake_check(fd, c->client);
	struct fake_object *o = fake_find(c->client, c->object);

	rm.controls++;
	if (fails)
		rm.fail_times--;
	if (fails && !rm.fails_late)
		return rm.fail_status;
	if (status == NVRM_OK)
		status = o ? fake_command(o, c) : NVRM_INVALID_OBJECT_HANDLE;
	return fails ? rm.fail_status : status;
}

static int fake_answer(int fd, unsigned long request, void *args)
{
	struct nvrm_control *c = args;

	switch ((unsigned int)request) {
	case NVRM_IOC_ALLOC:
		((struct nvrm_alloc *)args)->status = fake_alloc(fd, args);
		return 0;
	case NVRM_IOC_ALLOC_RIGHTS: /* begins alike */
		((struct nvrm_alloc_rights *)args)->status = fake_alloc(fd, args);
		return 0;
	case NVRM_IOC_FREE:
		((struct nvrm_free *)args)->status = fake_free(fd, args);
		return 0;
	case NVRM_IOC_DUP:
		((struct nvrm_dup *)args)->status = fake_dup(fd, args);
		return 0;
	case NVRM_IOC_CONTROL:
		if (rm.fail_errno && rm.fail_times && (rm.fail_command == c->command)) {
			rm.fail_times--;
			errno = rm.fail_errno;
			return -1;
		}
		c->status = fake_control(fd, c);
		return 0;
	default:
		errno = ENOTTY;
		return -1;
	}
}

static int fake_rm_ioctl(int fd, unsigned long request, void *args)
{
	int r, error;

	if (rm.before)
		rm.before(request, args);
	if (fcntl(fd, F_GETFD) < 0)
		return -1;
	if (!args) {
		errno = EFAULT;
		return -1;
	}
	pthread_mutex_lock(&rm.lock);
	r = fake_answer(fd, request, args);
	error = errno;
	pthread_mutex_unlock(&rm.lock);
	errno = error;
	return r;
}

/* The last descriptor of a file was closed. */
static inline void fake_rm_closed(int file)
{
	for (uint32_t i = 0; i < RM_MOST; i++)
		if (rm.objects[i].handle && rm.objects[i].handle == rm.objects[i].client &&
		    rm.objects[i].file == file)
			fake_drop(rm.objects[i].client, rm.objects[i].handle);
}

static inline void fake_rm_reset(void)
{
	memset(&rm, 0, sizeof(rm));
	pthread_mutex_init(&rm.lock, NULL);
}

#endif
