#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""streams.py PREFIX [OUT]: whether a stream that is held keeps others of its process, when they are more than the hardware's queues, on an NVIDIA GPU.
streams.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. One of so many streams is suspended, at the highest level that it has, throttle or gate; all have work, some of a higher
priority. Prints a table last; OUT: a file for all of it as JSON.
"""

import beside
import levels

PARTS = ("build", "door", "streams")


def streams(found):
    print(f"{'connections':>11} {'streams':>8}  {'held at':8} {'others went on':>15} {'of a higher priority':>21} {'it ran':>7} {'later':>6}")
    for row in levels.rows_of(found, "streams"):
        holds = (row["others_went_on"], row["above_went_on"], row["held_ran"], row["ran_later"]) == (row["others"], row["above"], 0, 20)
        print(f"{row['connections'] or 'not set':>11} {row['streams'] + row['above']:8}  {row['level']:8} {row['others_went_on']:8} of {row['others']:3}"
              f" {row['above_went_on']:17} of {row['above']} {row['held_ran']:7} {row['ran_later']:6}{levels.verdict(holds)}")


if __name__ == "__main__":
    beside.run(lambda prefix: levels.measure(prefix, PARTS), lambda found: levels.table(found, (streams,)), __doc__)
