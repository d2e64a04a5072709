"""One module a probe: what was said of the variants becomes figures and a verdict."""
