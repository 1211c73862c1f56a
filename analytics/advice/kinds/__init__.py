"""The kinds of recommendations, one module each."""
