"""Programs of the process in which a benchmark's own code runs: nothing here imports the rest."""
