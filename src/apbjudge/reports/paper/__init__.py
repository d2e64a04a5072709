"""The tables of the benchmark's paper, for whatever was judged."""
