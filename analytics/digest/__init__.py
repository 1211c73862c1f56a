"""Digests: a short text about a day or a week of a tenant's log. Each number has the SQL that reads it."""
