// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/signals.h"
#include "cli/wrap.h"
#include "simgpu/gpu.h"
#include "simgpu/proto.h"
#include "study/json.h"
#include "study/sources.h"

static const char usage[] =
	"usage: gpreempt sim-gpu [options]\n"
	"\n"
	"Is a simulated GPU, in real time, until Ctrl-C: gpreempt sim-client runs programs on it, as\n"
	"many as one likes, and gpreemptd schedules them as it does on a real one.\n"
	"\n"
	"  --device NAME|FILE mi308x (the default), mi300x, h200, or a file\n"
	"  --devices N        so many of them (1)\n"
	"  --socket PATH      where programs find it\n"
	"  --seed N           another run of chance (1)\n"
	"  --verbose          a line for each program that comes and goes, also where no terminal is\n"
	"  --json             as JSON\n"
	"\n"
	"examples:\n"
	"  gpreempt sim-gpu\n"
	"  gpreempt sim-gpu --device h200 --devices 2\n";

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

static void say_json(const char *line)
{
	struct json_object *o = json_object_new_object();

	gp_json_add_text(o, "line", line);
	gp_json_print(o);
	fflush(stdout);
}

/* It is told of as any simulated GPU is, so gpreemptd does not have its queues yield. */
static const char *difference(const struct gp_simgpu_opts *gpu)
{
	return gpu->device->sharing == GPM_TIMESLICE
		       ? "Unlike on a real NVIDIA GPU, gpreemptd stops offline programs on it for each request, and "
			 "sees their queues' work; there they yield by short slices, and hints tell of requests."
		       : "";
}

static void print_ready(const struct gp_options *o, const struct gp_simgpu_opts *gpu)
{
	struct json_object *json;

	if (!o->json) {
		printf("Simulated %s, %" PRIu32 " device%s, at %s; Ctrl-C ends it.\n", gpu->name,
		       gpu->devices, gpu->devices == 1 ? "" : "s", gpu->path);
		if (*difference(gpu))
			gp_print_wrapped(difference(gpu), 0, stdout);
	} else {
		json = json_object_new_object();
		gp_json_add_text(json, "schema", "gpreempt-sim-gpu-1");
		json_object_object_add(json, "simulated", json_object_new_boolean(1));
		gp_json_add_text(json, "device", gpu->name);
		gp_json_add_int(json, "devices", gpu->devices);
		gp_json_add_text(json, "socket", gpu->path);
		gp_json_add_text(json, "note", difference(gpu));
		gp_json_print(json);
	}
	fflush(stdout);
}

static int serve(const struct gp_options *o, struct gp_simgpu_opts *opts)
{
	struct gp_simgpu *gpu = NULL;
	char why[256] = "";
	int r;

	opts->end_fd = gp_signals_fd();
	if (opts->end_fd < 0)
		return gp_fail(GP_EXIT_FAILED, "cannot wait for signals: %s", strerror(-opts->end_fd));
	r = gp_simgpu_new(opts, &gpu, why, sizeof(why));
	if (r == 0) {
		print_ready(o, opts);
		r = gp_simgpu_run(gpu);
		gp_simgpu_free(gpu);
	}
	close(opts->end_fd);
	if (r < 0)
		return gp_fail(GP_EXIT_FAILED, "%s", why[0] ? why : strerror(-r));
	return GP_EXIT_OK;
}

static int find_socket(const struct gp_options *o, char *path, size_t size)
{
	int r;

	if (o->socket) {
		r = snprintf(path, size, "%s", o->socket) < (int)size ? 0 : -1;
		return r < 0 ? gp_fail(GP_EXIT_BAD_INPUT, "--socket: the path is too long") : -1;
	}
	r = gp_simgpu_path(path, size);
	if (r < 0)
		return gp_fail(GP_EXIT_BAD_INPUT,
			       "XDG_RUNTIME_DIR is not set, or too long; give --socket PATH");
	return -1;
}

static int run(const struct gp_verb *verb, int argc, char **argv)
{
	static struct gp_scenario device; /* what names are looked up into */
	struct gp_sources sources = { 0 };
	struct gp_diag diag = { "" };
	struct gp_options opts;
	char path[108];
	int code = gp_options_parse(verb, argc, argv, 0, 0, &opts);

	if (code < 0)
		code = find_socket(&opts, path, sizeof(path));
	if (code >= 0)
		return code;
	if (gp_sources_device(&sources, opts.device ? opts.device : "mi308x", &device, &diag) < 0)
		return gp_fail(GP_EXIT_BAD_INPUT, "%s", diag.text);
	return serve(&opts, &(struct gp_simgpu_opts){
				    .name = device.device_name,
				    .device = &device.device,
				    .devices = opts.devices ? (uint32_t)opts.devices : 1,
				    .path = path,
				    .seed = opts.has_seed ? opts.seed : 1,
				    .say = !opts.verbose && !isatty(STDOUT_FILENO) ? NULL
					   : opts.json                             ? say_json
										   : say,
			    });
}

const struct gp_verb gp_verb_sim_gpu = {
	.name = "sim-gpu",
	.summary = "be a simulated GPU, in real time",
	.usage = usage,
	.options = "device devices socket seed verbose json",
	.run = run,
};
