#!/bin/sh
# SPDX-License-Identifier: MIT
# Deadlines: under the policy deadline training leaves only when a request would miss its promise. chat promises 40 ms, mail a second.
set -eu

gpreempt policy "${POLICY:-deadline}"
gpreempt sim-client --offline --work train --name train --duration "${DURATION:-12s}" >/dev/null &
train=$!
gpreempt sim-client --online --work infer-10ms --rate 40 --arrival poisson --hints --name mail --slo 1s --duration "${DURATION:-12s}" &
mail=$!
gpreempt sim-client --online --work infer-10ms --rate 20 --arrival poisson --hints --name chat --slo 40ms --duration "${DURATION:-12s}" &
chat=$!
wait $mail $chat $train
