#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""old_kernel.py COMMAND...: run it, and all that it starts, on a kernel that has nothing newer than Linux 4.18, which EL8 has.

A filter answers newer system calls with ENOSYS and newer socket options with ENOPROTOOPT. Not a test itself.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# include/uapi/linux/filter.h, seccomp.h and audit.h, Linux 4.18
LOAD, JUMP_EQ, JUMP_GE, ANSWER = 0x20, 0x15, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
NUMBER, ARGUMENT = 0, 16

# arch/x86/entry/syscalls/syscall_64.tbl, Linux 4.18: rseq (334) is its last, and since 5.1 they go on at 424 everywhere.
FIRST_NEW_CALL = 424
SETSOCKOPT, GETSOCKOPT = 54, 55
# include/uapi/asm-generic/socket.h, Linux 4.18: SO_ZEROCOPY (60) is its last.
SOL_SOCKET, FIRST_NEW_OPTION = 1, 61


def steps():
    """(code, value, steps to pass over if true, if false)"""
    return [
        (LOAD, NUMBER, 0, 0),
        (JUMP_GE, FIRST_NEW_CALL, 7, 0),
        (JUMP_EQ, SETSOCKOPT, 1, 0),
        (JUMP_EQ, GETSOCKOPT, 0, 4),
        (LOAD, ARGUMENT + 8, 0, 0),
        (JUMP_EQ, SOL_SOCKET, 0, 2),
        (LOAD, ARGUMENT + 16, 0, 0),
        (JUMP_GE, FIRST_NEW_OPTION, 2, 0),
        (ANSWER, ALLOW, 0, 0),
        (ANSWER, FAIL | errno.ENOSYS, 0, 0),
        (ANSWER, FAIL | errno.ENOPROTOOPT, 0, 0),
    ]


def install():
    if platform.machine() != "x86_64":
        sys.exit("old_kernel.py: it knows the numbers of x86-64 alone")
    code = b"".join(struct.pack("=HBBI", step[0], step[2], step[3], step[1]) for step in steps())
    kept = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(steps()), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    # Root needs no promise, which would forbid its children to be somebody else.
    if os.geteuid() != 0:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
        sys.exit(f"old_kernel.py: {os.strerror(ctypes.get_errno())}")


if len(sys.argv) < 2:
    sys.exit(__doc__)
install()
os.execvp(sys.argv[1], sys.argv[1:])
