"""Reports from the log: stale results, leaks, a timeline, and what an invalidation would cost."""
