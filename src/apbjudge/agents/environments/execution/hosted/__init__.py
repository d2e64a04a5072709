"""Programs of the process in which a suite's own code runs: nothing here imports the rest."""
