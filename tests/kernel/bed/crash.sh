#!/bin/sh
# SPDX-License-Identifier: MIT
# Takes the machine with it.
echo 1..1
echo 'ok 1 - the last word'
sleep 1
echo 1 >/proc/sys/kernel/sysrq
echo c >/proc/sysrq-trigger
