"""How a tenant is, in a sentence for each finding of its digests, the worst first.

Staff pages and the dashboard show it first. It reads rows alone: neither the log nor the object store.
"""
