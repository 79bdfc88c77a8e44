"""The simulator's own kernels."""
