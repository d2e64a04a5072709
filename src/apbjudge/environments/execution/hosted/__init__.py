"""Programs of the process that holds an environment: the standard library and its package alone."""
