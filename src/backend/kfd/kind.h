/* SPDX-License-Identifier: MIT */
#ifndef GP_BACKEND_KFD_KIND_H
#define GP_BACKEND_KFD_KIND_H

#include <stdint.h>

/* enum gp_queue_kind of a KFD_TYPE_*, as its ioctls number them (sysfs does so otherwise). */
uint32_t gp_kfd_kind(uint32_t type);

#endif
