"""Savings: awake time, busy time and money."""
