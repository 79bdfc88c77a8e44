"""Placement with a proof: blocks on a grid, and the workers of a design on the cores of a device."""
