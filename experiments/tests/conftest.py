"""Fixtures of the tests of experiments."""

from datafolder import real_data  # noqa: F401
