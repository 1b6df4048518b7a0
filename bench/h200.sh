#!/bin/sh
# SPDX-License-Identifier: MIT
# h200.sh --help says what it does.
set -eu

usage="usage: h200.sh PART[=SECONDS] PREFIX [OUT]
       h200.sh --within SECONDS PREFIX OUT PART[=SECONDS]...
       h200.sh --pack FILE

Measures on a machine with an NVIDIA GPU, nvcc and PyTorch. PREFIX: where gpreempt was installed, or the folder of an archive that was
unpacked. PART:

  rows          one server beside one training: exclusive, native, yield, yield with parking, at 300 and 500 requests a second
  rows50        the same at 50 requests a second
  rows_async    the same of a server that sends requests as they come, and gives no hints, at 300 a second
  mps           the same two by MPS, where the machine has its control program
  mps_gates     one of two clients of MPS is suspended at its gates, and resumed; skipped where there is no control program
  several       beside one training and beside three, by weight
  mix           three servers in bursts, at 10, 50 and 90 percent of load, beside three trainings
  decode        64 tokens a request, a hint open throughout; the processor is what a token waits for
  graph_decode  the same, where it is the GPU
  latency       how long an online kernel waits for offline kernels of 0.1 ms to endless
  levels        throttle and gate in one process beside yield and interrupt: how long until an offline kernel is off, ratios, overhead
  streams       whether a stream that is held keeps others of its process, when they are more than the hardware's queues
  overhead      what gpreempt costs when nobody is to be preempted
  programs      whether unmodified programs are found, stopped and resumed, with the same result
  killed        whether anything is lost, or stays parked, while gpreemptd, online and offline programs are killed
  verify        gpreempt verify, with jobs of CUDA's and a PyTorch training
  same          whether CUDA's kernels and a training come to the same result with ten thousand preemptions as without
  smoke         whether a program is found, stopped and resumed at all

Each prints a table last; OUT: a folder for PART.json. One that is told to end (SIGTERM) keeps what it has, and says in it and below its table that it was
cut short. It is told to after SECONDS, or 420, and with all that it started ended 20 s later, if it is still there. Exits with 0 if all was
measured and is as it should be; a bar that is missed is a figure, and no failure.

--within does one part after the other, all in SECONDS: whatever is not over then, or when a part's own SECONDS are, is ended, and nothing of it
stays. What they print is in OUT/log, and last which parts failed, were cut short or had no time; the exit status is 1 if any did. --pack makes
FILE, a tar.xz with all that such a machine needs: unpacked there, bench/h200.sh PART gpreempt"

ends=20  # s, for a part that is told to end
most=420 # s, for one part: a machine is often lent for little longer
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

fail()
{
	echo "h200.sh: $*" >&2
	exit 2
}

# The archive of make dist, unpacked as gpreempt/, and these scripts.
pack()
{
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	"$here/../tools/dist.sh" "$work/dist"
	mkdir "$work/all" "$work/all/bench"
	tar -C "$work/all" -xf "$work"/dist/gpreempt-*.tar.xz
	mv "$work"/all/gpreempt-* "$work/all/gpreempt"
	cp -R "$here/h200" "$here/h200.sh" "$work/all/bench"
	tar -C "$work/all" -cJf "$1" gpreempt bench
}

# An archive's folder has everything but a prefix of its own.
install_it()
{
	if [ -x "$1/install.sh" ]; then
		prefix=$(mktemp -d)
		"$1/install.sh" --prefix "$prefix" >/dev/null
	else
		prefix=$1
	fi
	[ -x "$prefix/bin/gpreemptd" ] || fail "there is no bin/gpreemptd in $1"
}

is_part()
{
	case $1 in
	rows | rows50 | rows_async | mps | mps_gates | several | mix | decode | graph_decode | latency | levels | streams | overhead | programs | killed | verify | same | smoke) ;;
	*) return 1 ;;
	esac
}

# run_part PART SECONDS OUT: timeout has a process group of its own, so that what the part leaves can be ended too.
run_part()
{
	echo "# $1: begins, ${2} s at the most"
	began=$(date +%s)
	timeout --kill-after="$ends" "$2" python3 "$here/h200/$1.py" "$prefix" "$3/$1.json" >"$3/now" 2>&1 &
	wait $! && status=0 || status=$?
	kill -s KILL -- "-$!" 2>/dev/null || :
	echo "# $1: ended with $status after $(($(date +%s) - began)) s" | cat "$3/now" - | tee -a "$3/log"
	rm "$3/now"
	[ "$status" -eq 0 ] || not_well="$not_well $1 ($status)"
}

# run_alone PART SECONDS [OUT]: the same on this terminal; what tells us to end tells the part.
run_alone()
{
	timeout --kill-after="$ends" "$2" python3 "$here/h200/$1.py" "$prefix" ${3:+"$3/$1.json"} &
	part=$!
	trap 'kill -s TERM "$part" 2>/dev/null || :' TERM INT
	wait "$part" && status=0 || status=$?
	while kill -s 0 "$part" 2>/dev/null; do # we were told
		wait "$part" && status=0 || status=$?
	done
	kill -s KILL -- "-$part" 2>/dev/null || :
	return "$status"
}

# A part without seconds of its own has all that are left.
within()
{
	end=$(($(date +%s) + $1 - ends))
	out=$3
	install_it "$2"
	mkdir -p "$out"
	shift 3
	for word in "$@"; do
		is_part "${word%%=*}" || fail "there is no part \"${word%%=*}\"; see h200.sh --help"
	done
	not_well=
	for word in "$@"; do
		left=$((end - $(date +%s)))
		seconds=$left
		case $word in *=*) seconds=${word#*=} ;; esac
		[ "$seconds" -le "$left" ] || seconds=$left
		if [ "$seconds" -gt 0 ]; then
			run_part "${word%%=*}" "$seconds" "$out"
		else
			echo "# ${word%%=*}: no time is left" | tee -a "$out/log"
			not_well="$not_well ${word%%=*} (no time)"
		fi
	done
	echo "# not well, by exit status:${not_well:- none of $#}" | tee -a "$out/log"
	[ -z "$not_well" ]
}

case ${1:-} in
--help)
	echo "$usage"
	;;
--pack)
	[ $# -eq 2 ] || fail "see h200.sh --help"
	pack "$2"
	;;
--within)
	[ $# -ge 5 ] || fail "see h200.sh --help"
	shift
	within "$@"
	;;
*)
	name=${1:-}
	name=${name%%=*}
	is_part "$name" || fail "there is no part \"$name\"; see h200.sh --help"
	[ $# -eq 2 ] || [ $# -eq 3 ] || fail "see h200.sh --help"
	case $1 in *=*) most=${1#*=} ;; esac
	install_it "$2"
	run_alone "$name" "$most" ${3:+"$3"}
	;;
esac
