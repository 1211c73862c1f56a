"""The kinds of recommendations, those that share their means in one module."""
