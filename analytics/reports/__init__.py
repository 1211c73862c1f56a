"""Reports from the log: stale results, leaks, a timeline, and the cost of an invalidation."""
