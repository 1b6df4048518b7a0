#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""check-types.py [ROOT]: what mypy has to say of ROOT/python, which it types whole; exits 77 if mypy is not installed.

As strict as mypy can be, but for what comes from JSON and from PyTorch, which have no types that it could know. Python 3.7 is the
oldest that it checks for; check-python.py sees to 3.6.
"""

import os
import shutil
import subprocess
import sys

FLAGS = ("--strict", "--python-version=3.7", "--no-warn-return-any", "--allow-subclassing-any", "--ignore-missing-imports", "--no-warn-unused-ignores",
         "--no-site-packages", "--cache-dir=/dev/null", "--no-error-summary", "--no-color-output")


def main():
    folder = os.path.join(sys.argv[1] if len(sys.argv) > 1 else ".", "python")
    if not shutil.which("mypy"):
        print("mypy is not installed")
        sys.exit(77)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py") or os.path.exists(os.path.join(folder, name, "__init__.py")))
    if not names:
        sys.exit(f"{folder}: there is no Python here")
    sys.exit(subprocess.run(["mypy", *FLAGS, *names], cwd=folder, check=False).returncode)


main()
