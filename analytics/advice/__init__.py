"""Recommend changes of a ruleset, and measure the effect of accepted ones. See docs/advice.md."""
