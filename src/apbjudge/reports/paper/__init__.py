"""The tables of the benchmark's paper, for any judgements."""
