"""Results as pictures: figures as plain data, and one HTML page that shows them."""

from wellsep.report.page import render_report

__all__ = ["render_report"]
