"""The summary documents, each a pure function of rollups. Contract: "Summary records"."""
