"""Records in, one HTML file out; nothing is computed here but how to show what was."""

from lqgap.report.page import render, write, write_figures

__all__ = ["render", "write", "write_figures"]
