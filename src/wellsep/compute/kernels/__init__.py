"""Kernels of numba and of Triton; ``triton_use`` says where those of Triton may be used."""
