"""Phase 3: generated code, brought up stage by stage against the oracle."""
