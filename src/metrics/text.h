/* SPDX-License-Identifier: MIT */
/* A snapshot as Prometheus reads it: the text format, version 0.0.4. docs/METRICS.md has the table. */
#ifndef GP_METRICS_TEXT_H
#define GP_METRICS_TEXT_H

#include "metrics/collect.h"

#define GP_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define GP_METRICS_CLIENTS 1000u /* at most so many are told one by one */

/* per_client: with a series for each process. For the caller to free; NULL: no memory. */
char *gp_metrics_text(const struct gp_snapshot *s, int per_client, size_t *ret_size);

#endif
