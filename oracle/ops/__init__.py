"""One file per op: exact integer arithmetic in numpy."""
