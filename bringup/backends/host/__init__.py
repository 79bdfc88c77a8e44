"""Backend `host`: the emitted sources, executed on this machine."""
