"""Alerts: a number from the log crosses a threshold, and people hear of it. docs/alerts.md."""
