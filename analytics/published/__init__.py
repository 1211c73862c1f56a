"""The published queries: SQL over ``proxy_logs`` that returns every number of every summary document."""
