"""Passes over tensors that stay on their accelerator."""
