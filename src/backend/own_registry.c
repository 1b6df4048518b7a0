// SPDX-License-Identifier: MIT
#include "backend/own.h"

#include "backend/kfd/own.h"
#include "backend/nvrm/own.h"

__thread uint64_t gp_own_ring;

const struct gp_own_ops *const gp_own_vendors[256] = {
	['F'] = &gp_nvrm_own,
	['K'] = &gp_kfd_own,
};
