#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""graph_decode.py PREFIX [OUT]: as decode.py, of a model so large that the GPU and not the processor is what a token waits for.
graph_decode.py --again FILE: the table of such a measurement.

PREFIX is where gpreempt was installed. Each token is one CUDA graph, and the program waits for it. Prints a table last; OUT: a file for all of it as JSON.
"""

import beside
import decode

if __name__ == "__main__":
    beside.run(lambda prefix: decode.measure(prefix, "graph_tokens"), decode.table, __doc__)
