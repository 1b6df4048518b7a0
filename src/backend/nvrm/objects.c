// SPDX-License-Identifier: MIT
/* The application's objects, as far as channels hang on them. With the lock held. */
#include "backend/nvrm/own_internal.h"

struct rm_object *rm_object(struct gp_own *own, uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < own->top_object; i++) {
		struct rm_object *o = &own->objects[i];

		if (o->kind != RM_FREE && o->client == client && o->handle == handle)
			return o;
	}
	return NULL;
}

static struct rm_object *free_place(struct gp_own *own)
{
	for (uint32_t i = 0; i < own->top_object; i++)
		if (own->objects[i].kind == RM_FREE)
			return &own->objects[i];
	return own->top_object < RM_MOST_OBJECTS ? &own->objects[own->top_object++] : NULL;
}

/* NULL: there is no place for it. */
static struct rm_object *add(struct gp_own *own, const struct rm_object *like)
{
	struct rm_object *o = rm_object(own, like->client, like->handle);

	if (o)
		rm_remove(own, o);
	o = free_place(own);
	if (o)
		*o = *like;
	return o;
}

void rm_note_client(struct gp_own *own, uint32_t client, int fd)
{
	struct rm_object *o = rm_object(own, client, client);

	if (!o)
		o = add(own, &(struct rm_object){ .client = client, .handle = client, .kind = RM_CLIENT });
	if (o)
		o->fd = fd;
}

struct rm_object *rm_note_device(struct gp_own *own, uint32_t client, uint32_t handle, uint32_t gpu_id)
{
	return add(own, &(struct rm_object){ .client = client,
					     .handle = handle,
					     .parent = client,
					     .kind = RM_DEVICE,
					     .queue = RM_NO_QUEUE,
					     .gpu_id = gpu_id });
}

/* Its device's groups are on that GPU; some may have come first. */
void rm_note_subdevice(struct gp_own *own, uint32_t client, uint32_t device, uint32_t handle, uint32_t gpu_id)
{
	struct rm_object *parent = rm_object(own, client, device);

	(void)add(own, &(struct rm_object){ .client = client,
					    .handle = handle,
					    .parent = device,
					    .kind = RM_SUBDEVICE,
					    .queue = RM_NO_QUEUE,
					    .gpu_id = gpu_id });
	if (parent)
		parent->gpu_id = gpu_id;
	for (uint32_t i = 0; i < own->top; i++) {
		struct rm_queue *q = &own->queues[i];

		if (q->place == RM_HERE && q->client == client && q->device == device &&
		    q->gpu_id != gpu_id) {
			q->gpu_id = gpu_id;
			rm_changed(own, q);
		}
	}
}

static uint32_t kind_of(uint32_t engine)
{
	if (engine >= NVRM_ENGINE_FIRST_GR && engine <= NVRM_ENGINE_LAST_GR)
		return GP_KIND_COMPUTE;
	if ((engine >= NVRM_ENGINE_FIRST_COPY && engine <= NVRM_ENGINE_LAST_COPY) ||
	    (engine >= NVRM_ENGINE_COPY10 && engine <= NVRM_ENGINE_COPY19))
		return GP_KIND_SDMA;
	return GP_KIND_UNKNOWN;
}

static uint32_t new_queue(struct gp_own *own, const struct rm_object *o, uint32_t kind)
{
	const struct rm_object *device = rm_object(own, o->client, o->parent);
	struct rm_queue like = { .client = o->client,
				 .handle = o->handle,
				 .device = o->parent,
				 .gpu_id = device ? device->gpu_id : 0,
				 .kind = kind };
	const struct rm_queue *q = rm_add_queue(own, &like);

	return q ? (uint32_t)(q - own->queues) : RM_NO_QUEUE;
}

void rm_note_group(struct gp_own *own, uint32_t client, uint32_t device, uint32_t handle, uint32_t engine)
{
	struct rm_object *o = add(own, &(struct rm_object){ .client = client,
							    .handle = handle,
							    .parent = device,
							    .kind = RM_GROUP,
							    .queue = RM_NO_QUEUE });

	if (o)
		o->queue = new_queue(own, o, kind_of(engine));
}

/* The queue that it is in; NULL: none that we know. */
struct rm_queue *rm_note_channel(struct gp_own *own, uint32_t client, uint32_t parent, uint32_t handle)
{
	const struct rm_object *in = rm_object(own, client, parent);
	uint32_t is_grouped = in && in->kind == RM_GROUP;
	uint32_t queue = is_grouped ? in->queue : RM_NO_QUEUE;
	struct rm_object *o = add(own, &(struct rm_object){ .client = client,
							    .handle = handle,
							    .parent = parent,
							    .kind = RM_CHANNEL,
							    .queue = queue });

	if (!o && queue != RM_NO_QUEUE)
		own->queues[queue].is_partial = 1;
	if (o && !is_grouped)
		o->queue = new_queue(own, o, GP_KIND_UNKNOWN);
	if (!o || o->queue == RM_NO_QUEUE)
		return NULL;
	return &own->queues[o->queue];
}

void rm_note_engine(struct gp_own *own, uint32_t client, uint32_t channel, uint32_t kind)
{
	struct rm_queue *q = rm_find_queue(own, client, channel);

	/* A copy engine may serve the compute channels too. */
	if (!q || q->kind == kind || q->kind == GP_KIND_COMPUTE)
		return;
	q->kind = kind;
	rm_changed(own, q);
}

/* The handle of the device that a channel is on. */
static uint32_t device_of(struct gp_own *own, const struct rm_object *channel)
{
	const struct rm_object *in;

	if (channel->queue != RM_NO_QUEUE)
		return own->queues[channel->queue].device;
	in = rm_object(own, channel->client, channel->parent);
	return in && in->kind == RM_GROUP ? in->parent : channel->parent;
}

/* A tree is client, device, group or subdevice, and channel. */
static int is_below(struct gp_own *own, const struct rm_object *o, const struct rm_object *top)
{
	if (o == top)
		return 1;
	if (o->client != top->client)
		return 0;
	if (top->kind == RM_DEVICE && o->kind == RM_CHANNEL)
		return device_of(own, o) == top->handle;
	return top->kind == RM_CLIENT || o->parent == top->handle;
}

static int has_queue(const struct gp_own *own, const struct rm_object *o)
{
	return o->queue != RM_NO_QUEUE && (o->kind == RM_GROUP || o->kind == RM_CHANNEL) &&
	       own->queues[o->queue].handle == o->handle;
}

/* What came meanwhile was not counted. */
static void count(uint32_t *going, int by)
{
	if (by > 0 || *going)
		*going += (uint32_t)by;
}

void rm_mark(struct gp_own *own, const struct rm_object *top, int by)
{
	for (uint32_t i = 0; i < own->top_object; i++) {
		struct rm_object *o = &own->objects[i];

		if (o->kind == RM_FREE || !is_below(own, o, top))
			continue;
		count(&o->going, by);
		if (has_queue(own, o))
			count(&own->queues[o->queue].going, by);
	}
}

void rm_remove(struct gp_own *own, struct rm_object *top)
{
	for (uint32_t i = 0; i < own->top_object; i++) {
		struct rm_object *o = &own->objects[i];

		if (o == top || o->kind == RM_FREE || !is_below(own, o, top))
			continue;
		if (has_queue(own, o))
			rm_remove_queue(own, &own->queues[o->queue]);
		o->kind = RM_FREE;
	}
	if (has_queue(own, top))
		rm_remove_queue(own, &own->queues[top->queue]);
	top->kind = RM_FREE;
	while (own->top_object && own->objects[own->top_object - 1].kind == RM_FREE)
		own->top_object--;
}

/* Its device's own, or another of the same GPU. */
struct rm_object *rm_subdevice(struct gp_own *own, const struct rm_queue *q)
{
	struct rm_object *other = NULL;

	for (uint32_t i = 0; i < own->top_object; i++) {
		struct rm_object *o = &own->objects[i];

		if (o->kind != RM_SUBDEVICE || o->going || o->client != q->client)
			continue;
		if (o->parent == q->device)
			return o;
		if (q->gpu_id && o->gpu_id == q->gpu_id)
			other = o;
	}
	return other;
}
