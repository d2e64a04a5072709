"""Facts that code can prove, and hints that it can't."""
