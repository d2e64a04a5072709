"""The log formats that are read, one module each."""
