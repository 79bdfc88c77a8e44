"""The four phases and the command line."""
