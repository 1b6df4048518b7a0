// SPDX-License-Identifier: MIT
#include "daemon/devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/account.h"
#include "discover/describe.h"

#define ALL_SIMULATED 16 /* root's are besides; so that there are numbers for real ones */

void gp_devices_free(struct gp_devices *d)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		free(d->by_number[i]);
	memset(d, 0, sizeof(*d));
}

static struct gp_device *find(const struct gp_devices *d, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		struct gp_device *one = d->by_number[i];

		if (one && !one->is_simulated && one->gpu_id == gpu_id)
			return one;
	}
	return NULL;
}

/* A simulated GPU gives its key to the programs that it takes: containers have accounts of their own. */
static struct gp_device *find_told(const struct gp_devices *d, uint64_t account, uint32_t gpu_id,
				   const uint64_t key[2])
{
	bool has_key = key[0] || key[1];

	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		struct gp_device *one = d->by_number[i];

		if (one && one->is_simulated && one->gpu_id == gpu_id && one->key[0] == key[0] &&
		    one->key[1] == key[1] && (has_key || one->account == account))
			return one;
	}
	return NULL;
}

static bool is_free(const struct gp_devices *d, uint32_t number)
{
	const struct gp_device *one = d->by_number[number];

	return !one || (one->is_simulated && !one->is_there);
}

/* Real ones have the first that nobody has, simulated ones the first after the last real one. */
static int free_number(const struct gp_devices *d, bool is_simulated, uint32_t *ret)
{
	uint32_t number = 0;

	for (uint32_t i = 0; is_simulated && i < GP_MOST_DEVICES; i++)
		if (d->by_number[i] && !d->by_number[i]->is_simulated)
			number = i + 1;
	for (; number < GP_MOST_DEVICES; number++) {
		if (!is_free(d, number))
			continue;
		*ret = number;
		return 0;
	}
	return -ENOSPC;
}

static int add(struct gp_devices *d, bool is_simulated, uint32_t gpu_id, struct gp_device **ret)
{
	uint32_t number = 0;
	int r = free_number(d, is_simulated, &number);
	struct gp_device *one = r == 0 ? calloc(1, sizeof(*one)) : NULL;

	if (!one)
		return r < 0 ? r : -ENOMEM;
	free(d->by_number[number]);
	d->by_number[number] = one;
	one->number = number;
	one->gpu_id = gpu_id;
	one->is_simulated = is_simulated;
	*ret = one;
	return 0;
}

static void describe(struct gp_device *one, const struct gp_found_device *found)
{
	one->is_there = true;
	one->caps = gp_describe_caps(found);
	gp_describe_device(found, one->number, &one->info);
}

void gp_devices_scanned(struct gp_devices *d, const struct gp_found *found)
{
	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++)
		if (d->by_number[i] && !d->by_number[i]->is_simulated)
			d->by_number[i]->is_there = false;
	for (size_t i = 0; i < found->ndevices; i++) {
		struct gp_device *one = find(d, found->devices[i].gpu_id);

		if (one || add(d, false, found->devices[i].gpu_id, &one) == 0)
			describe(one, &found->devices[i]);
	}
}

/* Whether there is room for one more simulated device. Users cannot take root's. */
static bool has_room(const struct gp_devices *d, uint64_t account)
{
	uint32_t users = 0, own = 0;

	for (uint32_t i = 0; i < GP_MOST_DEVICES; i++) {
		const struct gp_device *one = d->by_number[i];

		if (!one || !one->is_simulated || !one->is_there)
			continue;
		users += one->account != GP_ACCOUNT_ROOT;
		own += one->account == account;
	}
	return own < GP_MOST_TOLD && (account == GP_ACCOUNT_ROOT || users < ALL_SIMULATED);
}

/* By the first who tells of it: others, who may be a container's, do not change it. */
static void describe_told(struct gp_device *one, uint64_t account, const struct gp_device_info *info)
{
	one->account = account;
	one->caps = GP_CAP_ACTIVITY;
	one->info = *info;
	one->info.device = one->number;
	one->info.policy[0] = '\0';
	one->info.gpu_id = 0; /* a driver's: it has none */
	one->info.pci[0] = '\0';
	one->info.instances = 0;
	one->is_there = true;
}

int gp_devices_told(struct gp_devices *d, uint64_t account, const struct gp_device_info *info,
		    const uint64_t key[2], struct gp_device **ret)
{
	struct gp_device *one = find_told(d, account, info->device, key);
	int r;

	if (strcmp(info->backend, "sim") != 0)
		return -EINVAL;
	if ((!one || !one->is_there) && !has_room(d, account))
		return -ENOSPC;
	if (!one) {
		r = add(d, true, info->device, &one);
		if (r < 0)
			return r;
		memcpy(one->key, key, sizeof(one->key));
	}
	if (!one->is_there)
		describe_told(one, account, info);
	one->agents++;
	*ret = one;
	return 0;
}

bool gp_device_is_kfd(const struct gp_device *device)
{
	return !device->is_simulated && !strcmp(device->info.backend, "kfd");
}

void gp_devices_left(struct gp_device *device)
{
	device->is_there = --device->agents > 0;
}

struct gp_device *gp_devices_at(const struct gp_devices *d, uint32_t number)
{
	struct gp_device *one = number < GP_MOST_DEVICES ? d->by_number[number] : NULL;

	return one && one->is_there ? one : NULL;
}

uint32_t gp_devices_number(const struct gp_devices *d, uint32_t gpu_id)
{
	const struct gp_device *one = find(d, gpu_id);

	return one && one->is_there ? one->number : GP_NO_DEVICE;
}
