"""How far a judge can be trusted: judgements and labels matched, and given to the statistics."""
