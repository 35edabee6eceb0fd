"""Stand-ins with contents, for modules that are not installed; see nkx/missing.py."""
