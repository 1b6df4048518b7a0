// SPDX-License-Identifier: MIT
/* Where CUDA's headers are, this is built: what src/level/cuda_calls.h says of them is what they say. */
#include <cupti.h>
#include <stddef.h>

#include "level/cuda_calls.h"

#define SAME(a, b) _Static_assert((long)(a) == (long)(b), #a)
#define PLACE(theirs, field, ours, name) SAME(offsetof(theirs, field), offsetof(struct ours, name))

SAME(sizeof(CUpti_CallbackData), sizeof(struct gp_cupti_call));
PLACE(CUpti_CallbackData, callbackSite, gp_cupti_call, site);
PLACE(CUpti_CallbackData, functionParams, gp_cupti_call, params);
PLACE(CUpti_CallbackData, functionReturnValue, gp_cupti_call, result);
PLACE(CUpti_CallbackData, context, gp_cupti_call, context);
PLACE(CUpti_CallbackData, correlationData, gp_cupti_call, data);
SAME(sizeof(CUpti_ResourceData), sizeof(struct gp_cupti_resource));
PLACE(CUpti_ResourceData, context, gp_cupti_resource, context);
PLACE(CUpti_ResourceData, resourceHandle, gp_cupti_resource, stream);
PLACE(cuLaunchKernel_params, hStream, gp_cu_launch_params, stream);
PLACE(cuLaunchKernel_ptsz_params, hStream, gp_cu_launch_params, stream);
PLACE(cuLaunchCooperativeKernel_params, hStream, gp_cu_launch_params, stream);
PLACE(cuLaunchCooperativeKernel_ptsz_params, hStream, gp_cu_launch_params, stream);
PLACE(CUlaunchConfig, hStream, gp_cu_launch_config, stream);
PLACE(cuLaunchKernelEx_params, config, gp_cu_launch_ex_params, config);
PLACE(cuLaunchKernelEx_ptsz_params, config, gp_cu_launch_ex_params, config);
PLACE(cuGraphLaunch_params, hStream, gp_cu_graph_launch_params, stream);
PLACE(cuGraphLaunch_ptsz_params, hStream, gp_cu_graph_launch_params, stream);
PLACE(cuStreamCreate_params, phStream, gp_cu_stream_create_params, stream);
PLACE(cuStreamCreateWithPriority_params, phStream, gp_cu_stream_create_params, stream);

SAME(CUPTI_CB_DOMAIN_DRIVER_API, GP_CUPTI_DRIVER);
SAME(CUPTI_CB_DOMAIN_RESOURCE, GP_CUPTI_RESOURCE);
SAME(CUPTI_API_ENTER, GP_CUPTI_ENTER);
SAME(CUPTI_API_EXIT, GP_CUPTI_EXIT);
SAME(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, GP_CUPTI_CONTEXT_GOES);
SAME(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, GP_CUPTI_STREAM_GOES);
SAME(CUPTI_DRIVER_TRACE_CBID_cuStreamCreate, GP_CUPTI_STREAM_CREATE);
SAME(CUPTI_DRIVER_TRACE_CBID_cuStreamCreateWithPriority, GP_CUPTI_STREAM_CREATE_WITH_PRIORITY);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, GP_CUPTI_LAUNCH);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, GP_CUPTI_LAUNCH_PTSZ);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, GP_CUPTI_LAUNCH_COOPERATIVE);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, GP_CUPTI_LAUNCH_COOPERATIVE_PTSZ);
SAME(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, GP_CUPTI_GRAPH_LAUNCH);
SAME(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz, GP_CUPTI_GRAPH_LAUNCH_PTSZ);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, GP_CUPTI_LAUNCH_EX);
SAME(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, GP_CUPTI_LAUNCH_EX_PTSZ);
SAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, GP_CUPTI_MULTIPLE_SUBSCRIBERS);

SAME(CU_STREAM_NON_BLOCKING, GP_CU_NON_BLOCKING);
SAME(CU_STREAM_WAIT_VALUE_GEQ, GP_CU_WAIT_GEQ);
SAME(CU_STREAM_CAPTURE_STATUS_NONE, GP_CU_NOT_CAPTURING);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED, GP_CU_RELAXED);
SAME(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP, GP_CU_REGISTER);

/* How the calls are made. */
int gp_cuda_headers(void);

int gp_cuda_headers(void)
{
	CUresult (*waits)(CUstream, CUdeviceptr, cuuint32_t, unsigned int) = cuStreamWaitValue32_v2;
	CUresult (*writes)(CUstream, CUdeviceptr, cuuint32_t, unsigned int) = cuStreamWriteValue32_v2;
	CUresult (*captures)(CUstream, CUstreamCaptureStatus *) = cuStreamIsCapturing;
	CUresult (*exchanges)(CUstreamCaptureMode *) = cuThreadExchangeStreamCaptureMode;
	CUresult (*registers)(void *, size_t, unsigned int) = cuMemHostRegister_v2;
	CUresult (*addresses)(CUdeviceptr *, void *, unsigned int) = cuMemHostGetDevicePointer_v2;

	return waits && writes && captures && exchanges && registers && addresses;
}
