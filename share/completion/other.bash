# SPDX-License-Identifier: MIT
source "${BASH_SOURCE[0]%/*}/gpreempt"
