"""Read a warehouse's own history of statements as log entries, for a cache that is not there yet.

A module for each source reads its files; `standardize` says of each statement what a Gateway would, by
sqlglot; `entries` writes log entries. Commands and workers import this package. Web processes never do:
sqlglot takes 20 MB of memory.
"""
