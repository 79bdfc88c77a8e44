"""The oracle; importing the package imports nothing."""
