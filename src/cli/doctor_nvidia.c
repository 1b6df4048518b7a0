// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "discover/discover.h"

#define LEFT 2 /* findings that come after the GPUs */

/* NVIDIA's MPS documentation: where its control program listens, unless the variable says otherwise. */
#define MPS_FOLDER "/tmp/nvidia-mps"

static void check_version(struct gp_findings *f)
{
	char version[32];

	if (gp_nvidia_version("/", version, sizeof(version)) == 0)
		gp_finding_add(f, "NVIDIA version", "yes",
			       "%s: an agent stops the channel groups of its own process; each call is tried "
			       "when it is first needed, and gpreempt events says what the driver refused",
			       version);
}

static void tell_gpu(struct gp_findings *f, const struct gp_found_device *d)
{
	char mig[96] = "";

	if (d->instances)
		snprintf(mig, sizeof(mig),
			 "; MIG: %" PRIu32 " instances, each a GPU of its own to its programs", d->instances);
	gp_finding_add(f, "NVIDIA GPU", "yes", "%s, %04x:%02x:%02x.%x, %s%s", d->name, d->domain,
		       d->location >> 8 & 0xff, d->location >> 3 & 0x1f, d->location & 7,
		       d->uuid[0] ? d->uuid : "UUID unknown", mig);
}

static void check_gpus(struct gp_findings *f)
{
	struct gp_found *found;

	if (gp_discover(NULL, &found) < 0)
		return;
	for (size_t i = 0; i < found->ndevices; i++)
		if (found->devices[i].vendor == GP_VENDOR_NVIDIA && f->n < GP_MOST_FINDINGS - LEFT)
			tell_gpu(f, &found->devices[i]);
	gp_found_free(found);
}

static void check_mps(struct gp_findings *f)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[512];

	snprintf(path, sizeof(path), "%s/control", folder && *folder ? folder : MPS_FOLDER);
	if (access(path, F_OK) == 0)
		gp_finding_add(
			f, "MPS", "yes",
			"its control program is there (%s): programs under it share one channel group, "
			"which is stopped for all or for none",
			path);
}

void gp_doctor_nvidia(struct gp_findings *f)
{
	if (!strcmp(gp_doctor_file(f, "/dev/nvidiactl", "NVIDIA driver",
				   "no NVIDIA GPU, or its driver is not loaded"),
		    "no"))
		return;
	check_version(f);
	check_gpus(f);
	check_mps(f);
}
