/* SPDX-License-Identifier: MIT */
/* Clients in words, as a table and as JSON. */
#ifndef GP_CLI_CLIENT_TEXT_H
#define GP_CLI_CLIENT_TEXT_H

#include <gpreempt/gpreempt.h>

#include "cli/columns.h"
#include "cli/machine_list.h"

struct json_object;

/* By device; those who go first, first. */
void gp_clients_sort(struct gp_client_info *clients, size_t n);

/* A client of the simulated machine is nobody's process: the handle stands for it. */
uint64_t gp_client_number(const struct gp_client_info *c);
/* The library's simulated machine does not keep what gpreemptd does. */
int gp_client_is_measured(const struct gp_client_info *c);

#define GP_SHARE_TEXT 16
const char *gp_share_text(uint32_t permille, char text[GP_SHARE_TEXT]); /* "25.0%" */

/* Begins it, with a row for each. The list is the one that has their devices. wide: how often each became
 * active too. */
void gp_clients_table(struct gp_columns *table, const struct gp_machine_list *list,
		      const struct gp_client_info *clients, size_t n, int wide);
struct json_object *gp_clients_json(const struct gp_machine_list *list, const struct gp_client_info *clients,
				    size_t n);

#endif
