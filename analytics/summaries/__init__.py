"""Usage summaries: a day's rollup, and the documents made from rollups. Contract: Analytics."""
