"""Compute the summary documents from rollups. Contract: "Summary records"."""
