# SPDX-License-Identifier: MIT
"""A machine without PyTorch, for tests that are to mean the same, and to take as long, on one that has it."""

import os
import sys

import tap

ABSENT = os.path.join(tap.HERE, "absent")


def hide_torch():
    """From this process."""
    sys.modules["torch"] = None


def without_torch(environment):
    """The same for a Python that is started: before all other places it looks into one where there is none."""
    places = [ABSENT, environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, places))}
