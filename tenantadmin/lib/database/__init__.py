"""What Django's PostgreSQL backend lacks: monthly partitions, time limits, and two helpers for queries."""
