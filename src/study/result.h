/* SPDX-License-Identifier: MIT */
/* The figures of a row, as they are compared. NAN: not known. */
#ifndef GP_STUDY_RESULT_H
#define GP_STUDY_RESULT_H

#include <stdbool.h>

#include "study/rows.h"

#define GP_SLO_STEPS 3
/* Times the exclusive p99, in percent. */
extern const uint32_t gp_slo_percent[GP_SLO_STEPS];

struct gp_figures {
	double mean, min, p50, p95, p99, p999, max; /* latency in ns */
	double ratio_p50, ratio_p99;                /* to exclusive */
	double slo[GP_SLO_STEPS];                   /* part of the requests */
	double be_norm, harvest, online_busy, lost_work, cycles_per_request;
	double alone_wave_ns; /* what offline does alone in the same time */
	bool keeps_up;        /* online does: little more waits at the end than in exclusive */
};

void gp_figures_of(const struct gp_rows *rows, const struct gp_row *row, struct gp_figures *ret);
/* A percentile, if there are enough values for it to mean something. */
double gp_hist_figure(const struct gp_hist *h, uint32_t permyriad);

#endif
