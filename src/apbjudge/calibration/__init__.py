"""How far judges can be trusted: runs and human labels in, reliability and label plans out."""
