"""The page that people look at: one self-contained file."""
