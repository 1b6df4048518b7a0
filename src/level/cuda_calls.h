/* SPDX-License-Identifier: MIT */
/*
 * The calls of CUDA's driver and of CUPTI that a door uses, as cuda.h (CUDA_VERSION 13000),
 * cupti_callbacks.h, cupti_driver_cbid.h and generated_cuda_meta.h (CUPTI_API_VERSION 130001) have them.  A
 * number of a callback is never given to another call.  Both libraries are found when the program runs;
 * neither is linked.
 */
#ifndef GP_LEVEL_CUDA_CALLS_H
#define GP_LEVEL_CUDA_CALLS_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUctx_st *gp_cu_context;
typedef struct CUstream_st *gp_cu_stream;

#define GP_CU_SUCCESS 0
#define GP_CU_LEGACY ((gp_cu_stream)1)     /* CU_STREAM_LEGACY */
#define GP_CU_PER_THREAD ((gp_cu_stream)2) /* CU_STREAM_PER_THREAD */
#define GP_CU_NON_BLOCKING 1u              /* CU_STREAM_NON_BLOCKING */
#define GP_CU_WAIT_GEQ 0u                  /* CU_STREAM_WAIT_VALUE_GEQ */
#define GP_CU_NOT_CAPTURING 0              /* CU_STREAM_CAPTURE_STATUS_NONE */
#define GP_CU_RELAXED 2                    /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define GP_CU_REGISTER 3u                  /* CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP */

typedef int gp_cu_value(gp_cu_stream stream, uint64_t address, uint32_t value, uint32_t flags);
typedef int gp_cu_is_capturing(gp_cu_stream stream, int *ret_status);
typedef int gp_cu_exchange_mode(int *mode);
typedef int gp_cu_get_priority(gp_cu_stream stream, int *ret_priority);
typedef int gp_cu_get_flags(gp_cu_stream stream, uint32_t *ret_flags);
typedef int gp_cu_get_device(int *ret_device);
typedef int gp_cu_bus_id(char *text, int size, int device);
typedef int gp_cu_register(void *at, size_t size, uint32_t flags);
typedef int gp_cu_address(uint64_t *ret_address, void *at, uint32_t flags);

/* CUPTI */

enum { GP_CUPTI_DRIVER = 1, GP_CUPTI_RESOURCE = 3 }; /* domains */
enum { GP_CUPTI_ENTER, GP_CUPTI_EXIT };
enum { GP_CUPTI_CONTEXT_GOES = 2, GP_CUPTI_STREAM_GOES = 4 }; /* of the second domain */
enum {                                                        /* of the first */
       GP_CUPTI_STREAM_CREATE = 124,
       GP_CUPTI_LAUNCH = 307,
       GP_CUPTI_STREAM_CREATE_WITH_PRIORITY = 367,
       GP_CUPTI_LAUNCH_PTSZ = 442, /* ptsz: the stream NULL is the thread's own */
       GP_CUPTI_LAUNCH_COOPERATIVE = 477,
       GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ = 478,
       GP_CUPTI_GRAPH_LAUNCH = 514,
       GP_CUPTI_GRAPH_LAUNCH_PTSZ = 515,
       GP_CUPTI_LAUNCH_EX = 652,
       GP_CUPTI_LAUNCH_EX_PTSZ = 653,
};

#define GP_CUPTI_MULTIPLE_SUBSCRIBERS 39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */

struct gp_cupti_call {
	uint32_t site;
	const char *name;
	const void *params;
	const int *result; /* at exit */
	const char *symbol;
	gp_cu_context context; /* the thread's */
	uint32_t context_uid;
	uint64_t *data; /* ours, from the entry to the exit of one call */
	uint32_t correlation;
};

struct gp_cupti_resource {
	gp_cu_context context;
	gp_cu_stream stream;
	void *descriptor;
};

/* cuLaunchKernel, and cuLaunchCooperativeKernel as far as this */
struct gp_cu_launch_params {
	void *function;
	uint32_t grid[3], block[3], shared;
	gp_cu_stream stream;
};

struct gp_cu_launch_config {
	uint32_t grid[3], block[3], shared;
	gp_cu_stream stream;
};

struct gp_cu_launch_ex_params {
	const struct gp_cu_launch_config *config;
};

struct gp_cu_graph_launch_params {
	void *graph;
	gp_cu_stream stream;
};

struct gp_cu_stream_create_params {
	gp_cu_stream *stream;
};

typedef void gp_cupti_callback(void *data, uint32_t domain, uint32_t id, const void *info);
typedef int gp_cupti_subscribe(void **ret_subscriber, gp_cupti_callback *callback, void *data);
typedef int gp_cupti_unsubscribe(void *subscriber);
typedef int gp_cupti_enable(uint32_t is_on, void *subscriber, uint32_t domain, uint32_t id);

#endif
