#!/bin/sh
# SPDX-License-Identifier: MIT
# Three offline jobs by weight: under the policy fair each has its part of the GPU.
set -eu

gpreempt policy fair
jobs=
for weight in 100 200 400; do
	gpreempt sim-client --offline --work train --name "job$weight" --weight $weight --duration "${DURATION:-20s}" &
	jobs="$jobs $!"
done
sleep "${LOOK:-12}" # shares are of the last 10 seconds
gpreempt ps
# shellcheck disable=SC2086 # numbers
wait $jobs
