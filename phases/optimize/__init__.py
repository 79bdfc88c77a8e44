"""Phase 4: what limits the design, and what is provably better."""
