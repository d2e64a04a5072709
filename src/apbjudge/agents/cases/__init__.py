"""Cases: checks, and cases built from a user's data (arXiv:2606.04874, appendix B)."""
