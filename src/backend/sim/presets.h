/* SPDX-License-Identifier: MIT */
/* The devices of share/devices, compiled in: the library reads no files. */
#ifndef GP_BACKEND_SIM_PRESETS_H
#define GP_BACKEND_SIM_PRESETS_H

#include "model/device.h"

struct gp_preset {
	const char *name;
	const char *title;
	struct gpm_device device;
};

extern const struct gp_preset gp_presets[];
extern const size_t gp_npresets;

const struct gp_preset *gp_preset_find(const char *name); /* NULL: no such */

#endif
