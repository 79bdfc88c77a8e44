"""Checklist gates: typed evidence in, report out."""
