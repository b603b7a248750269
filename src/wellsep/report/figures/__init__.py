"""Figures as plain data."""
