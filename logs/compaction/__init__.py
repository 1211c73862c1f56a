"""Compact a day's raw log objects into one Parquet file. The rows depend on the objects alone."""
