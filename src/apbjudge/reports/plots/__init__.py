"""Figures for papers: each with the data behind it."""

from .figure import Figure, write_figures
from .specs import paper_figures

__all__ = ["Figure", "paper_figures", "write_figures"]
