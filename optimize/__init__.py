"""Phase 4: what limits the design."""
