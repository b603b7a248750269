"""Kernels of numba and of Triton; ``triton_use`` says where those of Triton may be used."""

from importlib import import_module
from typing import Any


def load(module: str) -> Any:
    """Import a module that imports numba, Triton, torch or dask at its top.

    Only functions that have found the package usable call this; nothing else imports such modules.
    The tests of the arrows between rooms read the name, so it is written out.
    """
    return import_module(module)
