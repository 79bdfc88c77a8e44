"""Commands of `python -m phases`, one module each."""
