"""One file per op: checks, shapes and lowering to the manifest."""
