"""A local page where humans label items: what is asked, in which order, and where it is kept."""
