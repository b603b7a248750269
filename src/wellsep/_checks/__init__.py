"""Checks of arguments, and their messages."""
