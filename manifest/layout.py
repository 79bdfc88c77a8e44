"""Placeholder, filled by the first capability."""
