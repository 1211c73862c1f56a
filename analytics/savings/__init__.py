"""Savings: what the cache spares of the time that a warehouse is billed for. Contract: docs/savings.md."""
