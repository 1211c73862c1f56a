"""The published queries: SQL over ``proxy_logs`` that gives every number of every summary document."""
