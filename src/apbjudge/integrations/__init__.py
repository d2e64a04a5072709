"""Ways into other tools, each an adapter of its own: engines that run parts on many machines."""
