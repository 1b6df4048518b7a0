# SPDX-License-Identifier: MIT
"""python3 -m gpreempt.verify, for those who have the package and not the verb."""

import sys

from gpreempt.verify.main import main

sys.exit(main(sys.argv[1:]))
