// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "discover/discover.h"

#define LEFT 2 /* findings that come after the GPUs */
#define MOST_DEVICES 64

static void check_version(struct gp_findings *f)
{
	char version[32];

	if (gp_nvidia_version("/", version, sizeof(version)) == 0)
		gp_finding_add(
			f, "NVIDIA version", "yes",
			"%s: an agent stops the channel groups of its own process; without a program on "
			"the GPU nothing can be tried, and what was is said at stops",
			version);
}

static void tell_gpu(struct gp_findings *f, const struct gp_found_device *d)
{
	char mig[128] = "";

	if (d->instances)
		snprintf(mig, sizeof(mig),
			 "; MIG: %" PRIu32
			 " instances, each a GPU of its own to its programs, scheduled as one GPU",
			 d->instances);
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
	uint32_t server = gp_mps_server();
	char path[512], process[48] = "";
	int is_there;

	snprintf(path, sizeof(path), "%s/control", folder && *folder ? folder : GP_MPS_FOLDER);
	is_there = access(path, F_OK) == 0;
	if (server)
		snprintf(process, sizeof(process), "%sits server is process %" PRIu32, is_there ? ", " : "",
			 server);
	if (is_there || server)
		gp_finding_add(f, "MPS", "yes",
			       "%s%s%s: programs under it share one channel group, which is stopped for all "
			       "or for none; gpreempt ps shows which they are",
			       is_there ? "its control program is at " : "", is_there ? path : "", process);
}

int gp_doctor_nvidia(struct gp_findings *f)
{
	const char *state = gp_doctor_file(f, "/dev/nvidiactl", "NVIDIA driver",
					   "no NVIDIA GPU, or its driver is not loaded");

	if (!strcmp(state, "no"))
		return 0;
	check_version(f);
	check_gpus(f);
	check_mps(f);
	gp_doctor_cuda(f);
	return !strcmp(state, "yes");
}

static void tell_stops(struct gp_findings *f, uint32_t device, const struct gp_stats *s)
{
	uint64_t done = s->suspends + s->slices;

	if (s->reason[0] && done + s->failures)
		gp_finding_add(f, "stops", done ? "?" : "no",
			       "device %" PRIu32 ": %s; %" PRIu64 " stops and %" PRIu64
			       " slices were done, %" PRIu64 " calls failed, %" PRIu64 " of them for slices",
			       device, s->reason, s->suspends, s->slices, s->failures, s->slice_failures);
	else if (s->reason[0])
		gp_finding_add(f, "stops", "no", "device %" PRIu32 ": %s", device, s->reason);
	else if (done)
		gp_finding_add(f, "stops", "yes",
			       "device %" PRIu32 ": the driver took %" PRIu64 " stops, %" PRIu64
			       " resumes and %" PRIu64 " slices from agents, and refused none",
			       device, s->suspends, s->resumes, s->slices);
	else
		gp_finding_add(f, "stops", "?",
			       "device %" PRIu32
			       ": no agent has tried one yet: start a program on it with gpreempt run, then "
			       "gpreempt suspend PID --lease 1s",
			       device);
}

void gp_doctor_stops(struct gp_findings *f, struct gp_ctx *ctx)
{
	struct gp_device_info devices[MOST_DEVICES] = { { .size = sizeof(devices[0]) } };
	struct gp_stats stats = { .size = sizeof(stats) };
	int n = gp_device_list(ctx, devices, MOST_DEVICES);

	for (int i = 0; i < n && i < MOST_DEVICES && f->n < GP_MOST_FINDINGS / 2; i++)
		if (!strcmp(devices[i].backend, "nvrm") &&
		    gp_device_stats(ctx, devices[i].device, &stats) == 0)
			tell_stops(f, devices[i].device, &stats);
}
