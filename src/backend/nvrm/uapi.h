/* SPDX-License-Identifier: MIT */
/*
 * The calls of NVIDIA's resource manager (RM) that anything here makes or follows.  Layouts and numbers were
 * read from the open kernel modules, 550 to 595, in which they are the same; each says the file, of
 * src/common/sdk/nvidia/inc where no other folder is named.  Fields that the driver writes are marked out.
 */
#ifndef GP_BACKEND_NVRM_UAPI_H
#define GP_BACKEND_NVRM_UAPI_H

#include <stdint.h>
#include <sys/ioctl.h>

/* src/nvidia/arch/nvalloc/unix/include/nv_escape.h: of ioctls of type 'F' that read and write. */
#define NVRM_TYPE 'F'
#define NVRM_NR_FREE 0x29u
#define NVRM_NR_CONTROL 0x2au
#define NVRM_NR_ALLOC 0x2bu
#define NVRM_NR_DUP 0x34u

#define NVRM_IOC(number, type) _IOC(_IOC_READ | _IOC_WRITE, NVRM_TYPE, number, sizeof(type))

/* nvos.h: NVOS21_PARAMETERS, and NVOS64_PARAMETERS, which begins alike. */
struct nvrm_alloc {
	uint32_t client, parent;
	uint32_t object; /* out, if it was 0; of a client it is the client */
	uint32_t object_class;
	uint64_t params;
	uint32_t params_size;
	uint32_t status; /* out */
};

struct nvrm_alloc_rights {
	uint32_t client, parent;
	uint32_t object; /* out, if it was 0 */
	uint32_t object_class;
	uint64_t params, rights;
	uint32_t params_size, flags;
	uint32_t status; /* out */
	uint32_t pad;
};

struct nvrm_free { /* NVOS00_PARAMETERS */
	uint32_t client, parent, object;
	uint32_t status; /* out */
};

struct nvrm_control { /* NVOS54_PARAMETERS */
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status; /* out */
};

struct nvrm_dup { /* NVOS55_PARAMETERS */
	uint32_t client, parent;
	uint32_t object; /* out, if it was 0 */
	uint32_t client_from, object_from, flags;
	uint32_t status; /* out */
};

#define NVRM_IOC_FREE NVRM_IOC(NVRM_NR_FREE, struct nvrm_free)
#define NVRM_IOC_CONTROL NVRM_IOC(NVRM_NR_CONTROL, struct nvrm_control)
#define NVRM_IOC_ALLOC NVRM_IOC(NVRM_NR_ALLOC, struct nvrm_alloc)
#define NVRM_IOC_ALLOC_RIGHTS NVRM_IOC(NVRM_NR_ALLOC, struct nvrm_alloc_rights)
#define NVRM_IOC_DUP NVRM_IOC(NVRM_NR_DUP, struct nvrm_dup)

/* Classes. nvos.h, class/cl0000.h, cl0001.h, cl0041.h: of clients */
#define NVRM_ROOT 0x0u
#define NVRM_ROOT_NON_PRIV 0x1u
#define NVRM_ROOT_CLIENT 0x41u
#define NVRM_DEVICE 0x80u      /* class/cl0080.h */
#define NVRM_SUBDEVICE 0x2080u /* class/cl2080.h */
#define NVRM_GROUP 0xa06cu     /* class/cla06c.h: a channel group */
/* Every generation has its own: class/cl906f.h to clc96f.h, cl90c0.h to clcdc0.h, cl90b5.h to clc9b5.h. */
#define NVRM_KIND(object_class) ((object_class)&0xffu)
#define NVRM_FIRST_KIND 0x9000u /* Fermi: what is below is no channel and no engine of one */
#define NVRM_KIND_CHANNEL 0x6fu
#define NVRM_KIND_COMPUTE 0xc0u
#define NVRM_KIND_COPY 0xb5u

/* nvos.h: NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS; a flag of one byte follows, which we do not need. */
struct nvrm_group_params {
	uint32_t error, ecc_error, va_space;
	uint32_t engine; /* NVRM_ENGINE_; 0: as the objects on its channels say */
};

/* class/cl2080_notification.h: NV2080_ENGINE_TYPE_ */
#define NVRM_ENGINE_FIRST_GR 0x01u
#define NVRM_ENGINE_LAST_GR 0x08u
#define NVRM_ENGINE_FIRST_COPY 0x09u
#define NVRM_ENGINE_LAST_COPY 0x12u
#define NVRM_ENGINE_COPY10 0x34u
#define NVRM_ENGINE_COPY19 0x3du

/* ctrl/ctrla06c.h: on a group */
#define NVRM_SET_TIMESLICE 0xa06c0103u
#define NVRM_GET_TIMESLICE 0xa06c0104u

struct nvrm_timeslice {
	uint64_t us; /* out of GET */
};

/* ctrl/ctrl2080/ctrl2080gpu.h: on a subdevice */
#define NVRM_GET_ID 0x20800142u

struct nvrm_id {
	uint32_t gpu; /* out: the PCI domain's 16 bits, bus and device (src/nvidia/src/kernel/gpu/gpu.c) */
};

/* ctrl/ctrl2080/ctrl2080fifo.h: on a subdevice */
#define NVRM_DISABLE_CHANNELS 0x2080110bu
#define NVRM_MOST_CHANNELS 64u

struct nvrm_disable_channels {
	uint8_t disable, pad[3]; /* 0: enable */
	uint32_t n;
	uint8_t only_scheduling, rewind; /* 0: what runs stops too; what was put into the channel stays */
	uint8_t pad2[6];
	uint64_t event;
	uint32_t client[NVRM_MOST_CHANNELS], channel[NVRM_MOST_CHANNELS];
};

/* nvstatuscodes.h */
#define NVRM_OK 0x00u
#define NVRM_BUSY_RETRY 0x03u
#define NVRM_GPU_IS_LOST 0x0fu
#define NVRM_INSUFFICIENT_PERMISSIONS 0x1bu
#define NVRM_INVALID_ARGUMENT 0x1fu
#define NVRM_INVALID_CHANNEL 0x21u
#define NVRM_INVALID_CLIENT 0x23u
#define NVRM_INVALID_COMMAND 0x24u
#define NVRM_INVALID_OBJECT 0x31u
#define NVRM_INVALID_OBJECT_HANDLE 0x33u
#define NVRM_INVALID_STATE 0x40u
#define NVRM_NOT_SUPPORTED 0x56u
#define NVRM_OBJECT_NOT_FOUND 0x57u
#define NVRM_TIMEOUT 0x65u
#define NVRM_TIMEOUT_RETRY 0x66u

_Static_assert(sizeof(struct nvrm_alloc) == 32, "NVOS21_PARAMETERS");
_Static_assert(sizeof(struct nvrm_alloc_rights) == 48, "NVOS64_PARAMETERS");
_Static_assert(sizeof(struct nvrm_free) == 16, "NVOS00_PARAMETERS");
_Static_assert(sizeof(struct nvrm_control) == 32, "NVOS54_PARAMETERS");
_Static_assert(sizeof(struct nvrm_dup) == 28, "NVOS55_PARAMETERS");
_Static_assert(sizeof(struct nvrm_group_params) == 16, "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS");
_Static_assert(sizeof(struct nvrm_timeslice) == 8, "NVA06C_CTRL_TIMESLICE_PARAMS");
_Static_assert(sizeof(struct nvrm_id) == 4, "NV2080_CTRL_GPU_GET_ID_PARAMS");
_Static_assert(sizeof(struct nvrm_disable_channels) == 536, "NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS");

#endif
