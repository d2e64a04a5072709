"""Facts that rules can prove, and hints that they can't."""
