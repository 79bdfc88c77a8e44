"""Flatten: a Reshape to two axes; the output tensor's shape says to which."""

from oracle.ops.reshape import prepare

__all__ = ["prepare"]
