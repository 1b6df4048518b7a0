/* SPDX-License-Identifier: MIT */
/* Devices and queues in words, as a table and as JSON. */
#ifndef GP_CLI_QUEUE_TEXT_H
#define GP_CLI_QUEUE_TEXT_H

#include <gpreempt/gpreempt.h>

#include "cli/machine_list.h"
#include "study/json.h"

/* "offline", "suspended", "compute": for good, whatever the number. */
const char *gp_class_text(uint32_t client_class);
const char *gp_state_text(uint32_t state);

/* PID:QUEUE, as suspend takes it; "?" for an id nobody told. */
#define GP_QUEUE_NAME 32
const char *gp_queue_name(const struct gp_queue_info *q, char text[GP_QUEUE_NAME]);

/* What its process is to NVIDIA's MPS: "server", "client" or "". */
const char *gp_mps_text(const struct gp_machine_list *list, uint32_t device, uint32_t pid);
void gp_mps_json(struct json_object *o, const struct gp_machine_list *list, uint32_t device, uint32_t pid);

void gp_machine_print(const struct gp_machine_list *list, FILE *out);
struct json_object *gp_machine_json(const struct gp_machine_list *list);
/* The list is the one that has it. */
struct json_object *gp_queue_json(const struct gp_machine_list *list, const struct gp_queue_info *q);
/* One line, without its end. */
void gp_queue_print(const struct gp_machine_list *list, const struct gp_queue_info *q, FILE *out);

#endif
