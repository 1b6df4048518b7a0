# SPDX-License-Identifier: MIT
"""What a figure is of: a simulated GPU, software that stands for one in a virtual machine, or a real one."""

import os
from typing import NamedTuple

from gpreempt._things import Device

SIMULATED, SOFTWARE, MEASURED = "simulated", "software GPU", "measured"
SOFTWARE_SIGN = "/sys/module/amdgpu/parameters/poll_us"  # a parameter of kernel/softgpu alone

Gpu = NamedTuple("Gpu", [
    ("kind", str),  # one of the three above
    ("name", str),
])

_TEXTS = {SIMULATED: "simulated {}", SOFTWARE: "software GPU {}, software cost under emulation", MEASURED: "measured on {}"}
_CHINESE = {SIMULATED: "模拟的 {}", SOFTWARE: "软件 GPU {}，仿真下的软件开销", MEASURED: "在 {} 上实测"}


def device_text(gpu: Gpu) -> str:
    """What stands on every figure."""
    return _TEXTS[gpu.kind].format(gpu.name)


def device_chinese(gpu: Gpu) -> str:
    return _CHINESE[gpu.kind].format(gpu.name)


def described(device: Device) -> Gpu:
    kind = SIMULATED if device.backend == "sim" else SOFTWARE if os.path.exists(SOFTWARE_SIGN) else MEASURED
    return Gpu(kind, device.name)
