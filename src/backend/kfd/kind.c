// SPDX-License-Identifier: MIT
#include "backend/kfd/kind.h"

#include <gpreempt/gpreempt.h>

#include "backend/kfd/uapi.h"

uint32_t gp_kfd_kind(uint32_t type)
{
	switch (type) {
	case KFD_TYPE_COMPUTE:
	case KFD_TYPE_AQL:
		return GP_KIND_COMPUTE;
	case KFD_TYPE_SDMA:
	case KFD_TYPE_SDMA_BY_ENGINE:
		return GP_KIND_SDMA;
	case KFD_TYPE_SDMA_XGMI:
		return GP_KIND_XGMI;
	default:
		return GP_KIND_UNKNOWN; /* the debugger's snapshot has such ones */
	}
}
