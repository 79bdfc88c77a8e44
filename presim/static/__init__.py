"""Checks of a design that need no run: exact, each a function over the design."""
