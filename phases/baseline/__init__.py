"""Phase 1: exact numbers - manifest, oracle and the baseline gate."""
