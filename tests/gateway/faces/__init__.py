"""The reference Gateway on the network, as small as tests with real drivers need. Not a product.

Each face speaks a protocol (`postgresql`, `snowflake`, `databricks`), and asks `tests.gateway.gateway` what
to do. PostgreSQL is the warehouse of all three.
"""
