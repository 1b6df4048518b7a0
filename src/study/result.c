// SPDX-License-Identifier: MIT
#include "study/result.h"

#include <math.h>

const uint32_t gp_slo_percent[GP_SLO_STEPS] = { 120, 150, 200 };

/* Below this a percentile is one or two values that happened to be the largest. */
static uint64_t values_needed(uint32_t permyriad)
{
	if (permyriad >= 9990)
		return 10000;
	return permyriad >= 9900 ? 1000 : 1;
}

double gp_hist_figure(const struct gp_hist *h, uint32_t permyriad)
{
	if (h->count < values_needed(permyriad))
		return NAN;
	return (double)gp_hist_quantile(h, permyriad);
}

static double divide(double a, double b)
{
	return b > 0 ? a / b : NAN;
}

static void figure_latency(const struct gp_hist *h, struct gp_figures *f)
{
	f->mean = h->count ? (double)gp_hist_mean(h) : NAN;
	f->min = h->count ? (double)h->min : NAN;
	f->max = h->count ? (double)h->max : NAN;
	f->p50 = gp_hist_figure(h, 5000);
	f->p95 = gp_hist_figure(h, 9500);
	f->p99 = gp_hist_figure(h, 9900);
	f->p999 = gp_hist_figure(h, 9990);
}

static void figure_ratios(const struct gp_hist *h, const struct gp_row *exclusive, struct gp_figures *f)
{
	const struct gp_hist *base = exclusive && exclusive->run ? &exclusive->run->latency : NULL;
	double p99 = base ? gp_hist_figure(base, 9900) : NAN;

	f->ratio_p50 = base ? divide(f->p50, gp_hist_figure(base, 5000)) : NAN;
	f->ratio_p99 = divide(f->p99, p99);
	for (int i = 0; i < GP_SLO_STEPS; i++) {
		f->slo[i] = NAN;
		if (!isnan(p99) && h->count)
			f->slo[i] = (double)gp_hist_at_most(h, (uint64_t)p99 * gp_slo_percent[i] / 100) /
				    (double)h->count;
	}
}

static void figure_offline(const struct gp_row *row, const struct gp_row *exclusive,
			   const struct gp_row *alone, struct gp_figures *f)
{
	const struct gp_run_result *run = row->run;
	const struct gp_run_result *base = exclusive ? exclusive->run : NULL;

	f->alone_wave_ns = alone && alone->run ? (double)alone->run->offline_wave_ns : NAN;
	f->online_busy = base ? divide((double)base->online_busy_ns, (double)base->measured_ns) : NAN;
	f->be_norm = NAN;
	if (row->config.kind != GP_CONFIG_EXCLUSIVE)
		f->be_norm = divide((double)run->offline_wave_ns, f->alone_wave_ns);
	f->harvest = divide(f->be_norm, 1 - f->online_busy);
	f->lost_work = divide((double)run->lost_wave_ns, (double)(run->offline_wave_ns + run->lost_wave_ns));
	if (!run->lost_wave_ns)
		f->lost_work = 0;
}

/*
 * A run ends in the middle of some request, and perhaps of a burst: exclusive says how
 * many wait then.  Many more than that, and the tail is a figure of the duration alone.
 */
static bool keeps_up(const struct gp_run_result *run, const struct gp_row *exclusive)
{
	const uint64_t usual = exclusive && exclusive->run ? exclusive->run->unfinished : 0;

	return run->unfinished <= usual + run->requests / 20 + 10;
}

void gp_figures_of(const struct gp_rows *rows, const struct gp_row *row, struct gp_figures *ret)
{
	const struct gp_row *exclusive = gp_rows_find(rows, GP_ROW_EXCLUSIVE, row->sweep);
	const struct gp_row *alone = gp_rows_find(rows, GP_ROW_ALONE, row->sweep);
	const struct gp_hist *latency = &row->run->latency;

	figure_latency(latency, ret);
	figure_ratios(latency, exclusive, ret);
	figure_offline(row, exclusive, alone, ret);
	ret->keeps_up = keeps_up(row->run, exclusive);
	ret->cycles_per_request = divide((double)row->run->cycles, (double)row->run->requests);
	if (row->error < 0) { /* it did not run: nothing is known */
		ret->be_norm = NAN;
		ret->harvest = NAN;
		ret->lost_work = NAN;
	}
}
