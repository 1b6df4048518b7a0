/* SPDX-License-Identifier: MIT */
/* What doctor found, one line for each thing it looked at. */
#ifndef GP_CLI_DOCTOR_H
#define GP_CLI_DOCTOR_H

#include <gpreempt/gpreempt.h>
#include <stddef.h>

#define GP_MOST_FINDINGS 24

struct gp_finding {
	const char *what;  /* 14 letters at most */
	const char *state; /* yes, no, denied, or ?: nobody says */
	char detail[384];
};

struct gp_findings {
	struct gp_finding items[GP_MOST_FINDINGS];
	size_t n;
	char advice[1024]; /* what to do next, sentence after sentence */
};

__attribute__((format(printf, 4, 5))) void gp_finding_add(struct gp_findings *f, const char *what,
							  const char *state, const char *format, ...);
__attribute__((format(printf, 2, 3))) void gp_advise(struct gp_findings *f, const char *format, ...);
/* What goes before the name of a program in advice, as it went before ours: "", or "bin/" in an unpacked
 * archive. */
const char *gp_own_folder(void);
/* A device file: is it there, and may we use it. The state. */
const char *gp_doctor_file(struct gp_findings *f, const char *path, const char *what, const char *absent);

/* All about AMD's driver; intrusive: its debugger's interface is tried too. 1: a queue of our own was stopped
 * and resumed. */
int gp_doctor_amd(struct gp_findings *f, int intrusive);
/* About NVIDIA's: the driver, its GPUs, and who shares them how. 1: it is there, and we may use it. */
int gp_doctor_nvidia(struct gp_findings *f);
/* And what gpreemptd heard from the agents in programs on them: taken, refused, not tried yet. */
void gp_doctor_stops(struct gp_findings *f, struct gp_ctx *ctx);
/* Whether programs of ROCm can be held at a launch: tried with rocminfo. */
void gp_doctor_levels(struct gp_findings *f);
void gp_doctor_cuda(struct gp_findings *f);
/* What schedules, with or without a GPU: rights, gpreemptd, the agent. */
void gp_doctor_scheduler(struct gp_findings *f);

#endif
