#!/bin/sh
# SPDX-License-Identifier: MIT
# compose.sh amd|nvidia|sim: a server and a training job in containers, on that kind of GPU, and 40 requests to the server.
# COMPOSE is the command, docker compose unless it is set.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
kind=${1:?amd, nvidia or sim}
[ "$kind" != sim ] || export GPREEMPT_CLASS_SOCKETS="${XDG_RUNTIME_DIR:?sim.sh sets it}/class"

${COMPOSE:-docker compose} version >/dev/null 2>&1 || {
	echo "$0: ${COMPOSE:-docker compose} does not run: install Docker's plug-in for it, or set COMPOSE=podman-compose" >&2
	exit 1
}

compose()
{
	${COMPOSE:-docker compose} -f "$here/compose.yaml" -f "$here/compose.$kind.yaml" "$@"
}

trap 'compose down -t 1' EXIT
compose up -d
for _ in $(seq 600); do # until it trains
	gpreempt ps | grep -q 'socket offline' && break
	sleep 0.1
done
python3 "$here/ask.py" "${PORT:-8000}"
gpreempt ps
gpreempt stats
