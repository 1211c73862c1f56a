"""The kinds of recommendations: one file each."""
