/* SPDX-License-Identifier: MIT */
#ifndef GP_TESTS_CUDA_DOUBLE_H
#define GP_TESTS_CUDA_DOUBLE_H

#include "level/cuda_calls.h"

#define CUDA_DOUBLE_REFUSED 1
#define CUDA_DOUBLE_NO_DEVICE 100
#define CUDA_DOUBLE_DEAD 700
#define CUDA_DOUBLE_KNOWN 712
#define CUDA_DOUBLE_CAPTURE 906
#define CUDA_DOUBLE_FAR 0x100000000000ull /* the device has its own addresses for the host's memory */

int cuInit(unsigned int flags);
int cuDeviceGet(int *ret, int ordinal);
int cuDeviceGetAttribute(int *ret, int attribute, int device);
int cuDevicePrimaryCtxRetain(gp_cu_context *ret, int device);
int cuCtxSetCurrent(gp_cu_context context);
int cuModuleLoadData(void **ret, const void *image);
int cuModuleGetFunction(void **ret, void *module, const char *name);
int cuMemHostAlloc(void **ret, size_t size, unsigned int flags);
int cuMemAlloc_v2(uint64_t *ret, size_t size);
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t size);
int cuStreamCreate(gp_cu_stream *ret, unsigned int flags);
int cuStreamCreateWithPriority(gp_cu_stream *ret, unsigned int flags, int priority);
int cuStreamDestroy_v2(gp_cu_stream stream);
int cuStreamGetPriority(gp_cu_stream stream, int *ret);
int cuStreamGetFlags(gp_cu_stream stream, unsigned int *ret);
int cuStreamSynchronize(gp_cu_stream stream);
int cuStreamBeginCapture_v2(gp_cu_stream stream, int how);
int cuStreamEndCapture(gp_cu_stream stream, void **ret_graph);
int cuGraphInstantiateWithFlags(void **ret, void *graph, unsigned long long flags);
int cuCtxGetStreamPriorityRange(int *ret_least, int *ret_most);
int cuStreamIsCapturing(gp_cu_stream stream, int *ret);
int cuThreadExchangeStreamCaptureMode(int *with);
int cuStreamWaitValue32_v2(gp_cu_stream stream, uint64_t at, uint32_t value, unsigned int flags);
int cuStreamWriteValue32_v2(gp_cu_stream stream, uint64_t at, uint32_t value, unsigned int flags);
int cuMemHostRegister_v2(void *at, size_t size, unsigned int flags);
int cuMemHostGetDevicePointer_v2(uint64_t *ret, void *at, unsigned int flags);
int cuCtxGetDevice(int *ret);
int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, gp_cu_stream stream, void **args,
		   void **extra);
int cuLaunchKernelEx(const struct gp_cu_launch_config *config, void *function, void **args, void **extra);
int cuGraphLaunch(void *graph, gp_cu_stream stream);

int cuptiSubscribe(void **ret, gp_cupti_callback *callback, void *data);
int cuptiUnsubscribe(void *subscriber);
int cuptiEnableCallback(uint32_t is_on, void *subscriber, uint32_t domain, uint32_t id);

/* For the test */
int cuda_double_launch_ptsz(gp_cu_stream stream, void **args);
int cuda_double_launch_as(uint32_t id, gp_cu_stream stream); /* by the call that has this number */
void cuda_double_fail(const char *name); /* from now on: as CUDA_DOUBLE_FAILS; "": nothing */
int cuda_double_fails(const char *name);
void cuda_double_load(void);                    /* the next launch waits until its context has no work */
int cuda_double_use(int context);               /* of two, in this thread; -1: of none */
void cuda_double_move(int context, int device); /* where it is from now on; 0 for both at first */
int cuda_double_mode(void);                     /* of captures, in this thread */
void cuda_double_destroy(int context);
void cuda_double_kill(int context);
struct CUstream_st *cuda_double_stream(gp_cu_stream stream, int is_ptsz);
const char *cuda_double_text(gp_cu_stream stream); /* all that was put there: K kernel, W wait, C write */
uint64_t cuda_double_kernels(gp_cu_stream stream); /* that have ended */

/* Between the two libraries */
int cuda_double_subscribe(gp_cupti_callback *callback, void *data);
int cuda_double_enable(uint32_t is_on, uint32_t domain, uint32_t id);

#endif
