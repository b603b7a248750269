"""Fused kernels of the GPU; `fused` says where they may be used."""
