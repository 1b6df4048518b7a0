#!/bin/sh
# SPDX-License-Identifier: MIT
# Deadlines: under the policy deadline, who has least time left goes first. chat promises 40 ms, mail a second; training has what is left.
set -eu

gpreempt policy "${POLICY:-deadline}"
gpreempt sim-client --offline --work train --name train --duration "${DURATION:-12s}" >/dev/null &
train=$!
gpreempt sim-client --online --work infer-10ms --rate 40 --arrival poisson --hints --name mail --slo 1s --duration "${DURATION:-12s}" &
mail=$!
gpreempt sim-client --online --work infer-10ms --rate 20 --arrival poisson --hints --name chat --slo 40ms --duration "${DURATION:-12s}" &
chat=$!
wait $mail $chat $train
