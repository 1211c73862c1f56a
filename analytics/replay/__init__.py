"""Replay a log: compute what a ruleset would have done with the requests that the log holds."""
