// SPDX-License-Identifier: MIT
#include <errno.h>
#include <gpreempt/gpreempt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/kfd/probe.h"
#include "backend/kfd/session.h"
#include "cli/doctor.h"
#include "cli/names.h"

#define PARAMETERS "/sys/module/amdgpu/parameters/"

static const char *yes_no(int yes)
{
	return yes ? "yes" : "no";
}

/* A module parameter, or -1. */
static int parameter(const char *name)
{
	char path[128];
	int value = -1;
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%d", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void check_parameters(struct gp_findings *f)
{
	int cwsr = parameter("cwsr_enable"), policy = parameter("sched_policy");

	if (cwsr < 0)
		gp_finding_add(f, "cwsr_enable", "?",
			       "this driver does not show the parameter; it is 1 unless "
			       "somebody changed it");
	else
		gp_finding_add(
			f, "cwsr_enable", yes_no(cwsr),
			cwsr ? "running waves are saved: a stop need not wait for them"
			     : "a stop waits until running kernels end, and resets the GPU if they take too "
			       "long");
	if (cwsr == 0)
		gp_advise(f, "Boot with amdgpu.cwsr_enable=1.");
	if (policy == 2)
		gp_finding_add(f, "sched_policy", "no",
			       "2: no hardware scheduler, which nothing here was made for");
	else if (policy >= 0)
		gp_finding_add(f, "sched_policy", "yes", "%d: the hardware scheduler runs the queues",
			       policy);
	else
		gp_finding_add(f, "sched_policy", "?",
			       "this driver does not show the parameter; it is 0, the "
			       "hardware scheduler, unless somebody changed it");
}

static void check_debugfs(struct gp_findings *f)
{
	if (access("/sys/kernel/debug/kfd/mqds", R_OK) == 0)
		gp_finding_add(f, "debugfs", "yes", "addresses and priorities of all queues can be read");
	else if (errno == EACCES)
		gp_finding_add(f, "debugfs", "denied",
			       "/sys/kernel/debug is root's: addresses and priorities of "
			       "queues are known from gpreemptd and its agents alone");
	else
		gp_finding_add(f, "debugfs", "no",
			       "/sys/kernel/debug/kfd/mqds: %s: mount -t debugfs none /sys/kernel/debug",
			       strerror(errno));
}

static void report_debugger(struct gp_findings *f, const struct gp_trial *t, int r)
{
	if (r == -ETIMEDOUT || r == -EDEADLK)
		gp_finding_add(f, "DBG_TRAP", "no", "hung: could not %s; the process that tried it %s",
			       t->step, r == -ETIMEDOUT ? "was killed" : "cannot be killed");
	else if (r < 0)
		gp_finding_add(f, "DBG_TRAP", r == -EACCES || r == -EPERM ? "denied" : "no",
			       "could not %s: %s", t->step, gp_strerror(r));
	else if (t->hung)
		gp_finding_add(f, "DBG_TRAP", "no",
			       "suspends and resumes a queue, but DISABLE hung, until a signal after %" PRIu64
			       " ms: leave --way dbg alone",
			       t->end_ns / 1000000);
	else
		gp_finding_add(f, "DBG_TRAP", "yes",
			       "tried: a queue suspended in %" PRIu64 " us, resumed in %" PRIu64
			       " us, let go in %" PRIu64 " us; for --way dbg alone",
			       t->stop_ns / 1000, t->resume_ns / 1000, t->end_ns / 1000);
}

static void check_debugger(struct gp_findings *f, int is_there, int intrusive)
{
	struct gp_trial trial;
	int r;

	if (!is_there) {
		gp_finding_add(f, "DBG_TRAP", "no", "this driver has no debugger's interface");
		return;
	}
	if (!intrusive) {
		gp_finding_add(
			f, "DBG_TRAP", "yes",
			"SUSPEND_QUEUES and RESUME_QUEUES are there, for --way dbg alone; not tried: "
			"gpreempt doctor --intrusive does, and takes everybody's work off the GPU for it");
		return;
	}
	r = gp_kfd_try_debugger(&trial);
	report_debugger(f, &trial, r);
}

/* Opening one stops nothing. */
static void check_sessions(struct gp_findings *f)
{
	uint32_t version = gp_session_version("");
	int fd;

	if (!version) {
		gp_finding_add(
			f, "batch call", "no",
			"this driver has no scheduling sessions: many queues are stopped one after the "
			"other, by agents");
		return;
	}
	fd = gp_kfd_session.open(0);
	if (fd >= 0)
		gp_finding_add(f, "batch call", "yes",
			       "scheduling sessions, version %" PRIu32
			       ": any number of queues of any process in one call, and no agent is needed",
			       version);
	else
		gp_finding_add(f, "batch call", fd == -EPERM ? "denied" : "no",
			       "scheduling sessions, version %" PRIu32 ": %s", version,
			       fd == -EPERM
				       ? "for the queues of others CAP_SYS_NICE is missing here; gpreemptd "
					 "has it as root"
				       : gp_strerror(fd));
	if (fd >= 0)
		gp_kfd_session.close(fd);
}

static void check_interfaces(struct gp_findings *f, int intrusive)
{
	struct gp_kfd_answers answers;
	int r = gp_kfd_ask(&answers);

	if (r < 0) {
		gp_finding_add(f, "interfaces", "no", "/dev/kfd cannot be asked: %s", gp_strerror(r));
		return;
	}
	gp_finding_add(f, "UPDATE_QUEUE", "yes",
		       "interface %" PRIu32 ".%" PRIu32
		       ": a process stops its own queues, one device cycle for each",
		       answers.major, answers.minor);
	check_debugger(f, answers.debugger == 0, intrusive);
	gp_finding_add(
		f, "private calls", "?",
		"PREEMPT_QUEUE (0x87) and RESUME_QUEUE (0x88): to another driver these numbers are other "
		"calls, so they are not tried; functions of such names are %sin this kernel. If you know "
		"that it has them: GPREEMPT_WAYS=private for the programs, --way private",
		answers.private_names ? "" : "not ");
	check_sessions(f);
}

static int check_by_doing(struct gp_findings *f)
{
	struct gp_trial trial;
	int r = gp_kfd_try(&trial);

	if (r == 0)
		gp_finding_add(f, "own queue", "yes",
			       "created on GPU %" PRIu32 " (gfx %" PRIu32
			       "), ran a packet, stopped in %" PRIu64
			       " us, a packet waited, resumed in %" PRIu64 " us, the packet ran",
			       trial.gpu_id, trial.gfx_target, trial.stop_ns / 1000, trial.resume_ns / 1000);
	else
		gp_finding_add(f, "own queue", r == -EACCES || r == -EPERM ? "denied" : "no",
			       "could not %s: %s", trial.step, gp_strerror(r));
	if (r == -EACCES || r == -EPERM)
		gp_advise(f, "To use the GPU: " GP_JOIN("render,video") ".");
	return r == 0;
}

int gp_doctor_amd(struct gp_findings *f, int intrusive)
{
	int works;

	if (!strcmp(gp_doctor_file(f, "/dev/kfd", "AMD driver",
				   "no AMD GPU, or its driver is not loaded (modprobe amdgpu)"),
		    "no"))
		return 0;
	check_parameters(f);
	check_debugfs(f);
	check_interfaces(f, intrusive);
	works = check_by_doing(f);
	/* Levels need nothing of the driver, and matter most where no queue can be stopped. */
	gp_doctor_levels(f);
	return works;
}
