"""Formats of dates and times on the admin site."""
