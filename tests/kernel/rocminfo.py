#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# bed: timeout=120 param=gfx=gfx90a
"""Debian's rocminfo, which nobody here wrote, lists the device."""
import re
import subprocess

done = subprocess.run(["rocminfo"], capture_output=True, text=True, check=False)
gpu = re.search(r"Name: +gfx90a *\n(.*?)\*\*\*", done.stdout, re.S)
checks = [
    (done.returncode == 0, "rocminfo ends well"),
    ("ROCk module is loaded" in done.stdout, "it finds the module it looks for"),
    (gpu is not None, "it lists the device as gfx90a"),
    (gpu and re.search(r"Compute Unit: +38\b", gpu[1]), "with its compute units"),
    (gpu and "KERNEL_DISPATCH" in gpu[1], "which dispatches kernels"),
]
for number, (holds, text) in enumerate(checks, 1):
    print(f"{'ok' if holds else 'not ok'} {number} - {text}")
print(f"1..{len(checks)}")
