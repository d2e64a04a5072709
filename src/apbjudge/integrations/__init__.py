"""Ways into other tools, each an adapter of its own: engines for many machines, test runners."""
