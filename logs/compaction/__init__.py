"""Raw log objects of a day to one Parquet file: a pure function of the objects under its prefix."""
