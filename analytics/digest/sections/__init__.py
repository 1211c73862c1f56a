"""The sections of a digest, one module each."""
