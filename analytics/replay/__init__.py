"""Replay a log: compute the outcome of its requests under a ruleset."""
