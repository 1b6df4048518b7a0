# SPDX-License-Identifier: MIT
"""The design notes' test programs, with their pass criteria: gpreempt-verify(1)."""
