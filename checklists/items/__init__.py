"""The checklist items, one file per phase."""
