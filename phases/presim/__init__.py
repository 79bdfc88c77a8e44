"""Phase 2: the manifest as a placed dataflow, simulated bit for bit against the oracle."""
