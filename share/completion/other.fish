# SPDX-License-Identifier: MIT
source (status dirname)/gpreempt.fish
