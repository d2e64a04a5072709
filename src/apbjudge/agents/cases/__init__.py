"""Cases: checked, and built from data of one's own (arXiv:2606.04874, appendix B)."""
