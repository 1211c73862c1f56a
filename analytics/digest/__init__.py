"""Digests: what a day or a week of a tenant's log says, each number with the SQL that gives it."""
