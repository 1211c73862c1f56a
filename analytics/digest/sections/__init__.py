"""The sections of a digest, one per file."""
