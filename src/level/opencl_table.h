/* SPDX-License-Identifier: MIT */
/*
 * The table of OpenCL's loader, as far as a door uses it: cl_icd_dispatch of CL/cl_icd.h (2023.02.06), whose
 * places are the loader's ABI, and the layer's own calls (CL/cl_layer.h).
 */
#ifndef GP_LEVEL_OPENCL_TABLE_H
#define GP_LEVEL_OPENCL_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct cl_object *gp_cl; /* a context, a device, a queue, a kernel, an event */

typedef gp_cl gp_cl_create_queue(gp_cl context, gp_cl device, uint64_t properties, int32_t *ret_error);
typedef gp_cl gp_cl_create_queue_with(gp_cl context, gp_cl device, const uint64_t *properties,
				      int32_t *ret_error);
typedef int32_t gp_cl_count(gp_cl object); /* retain or release */
typedef int32_t gp_cl_launch(gp_cl queue, gp_cl kernel, uint32_t dimensions, const size_t *offset,
			     const size_t *global, const size_t *local, uint32_t nwaits, const gp_cl *waits,
			     gp_cl *ret_event);
typedef gp_cl gp_cl_user_event(gp_cl context, int32_t *ret_error);
typedef int32_t gp_cl_set_status(gp_cl event, int32_t status);
typedef void gp_cl_callback(gp_cl event, int32_t status, void *data);
typedef int32_t gp_cl_set_callback(gp_cl event, int32_t type, gp_cl_callback *callback, void *data);

enum {
	GP_CL_CREATE_QUEUE = 9,
	GP_CL_RETAIN_QUEUE = 10,
	GP_CL_RELEASE_QUEUE = 11,
	GP_CL_RETAIN_EVENT = 43,
	GP_CL_RELEASE_EVENT = 44,
	GP_CL_LAUNCH = 59,
	GP_CL_SET_CALLBACK = 81,
	GP_CL_USER_EVENT = 84,
	GP_CL_SET_STATUS = 85,
	GP_CL_CREATE_QUEUE_WITH = 123,
};

#define GP_CL_SUCCESS 0
#define GP_CL_INVALID_VALUE (-30)
#define GP_CL_COMPLETE 0
#define GP_CL_QUEUE_PROPERTIES 0x1093u
#define GP_CL_OUT_OF_ORDER (1u << 0)
#define GP_CL_QUEUE_PRIORITY 0x1096u /* cl_khr_priority_hints */
#define GP_CL_PRIORITY_HIGH (1u << 0)
#define GP_CL_PRIORITY_LOW (1u << 2)
#define GP_CL_LAYER_API_VERSION 0x4240u
#define GP_CL_LAYER_NAME 0x4241u
#define GP_CL_LAYER_API_VERSION_100 100u

#endif
