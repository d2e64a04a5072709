"""How variants are made: from a plan taken as correct to one of which something is known."""
