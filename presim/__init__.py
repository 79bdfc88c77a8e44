"""Phase 2: the dataflow, designed and simulated."""
