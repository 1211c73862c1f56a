"""Recommend changes to a ruleset, and measure what they did. See docs/advice.md."""
