"""Phase 3: generated code."""
