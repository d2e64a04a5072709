"""Figures for papers: each with the data behind it."""

from .building import paper_figures
from .figure import Figure, write_figures

__all__ = ["Figure", "paper_figures", "write_figures"]
