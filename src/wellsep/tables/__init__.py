"""The one reader and the one writer of CSV, TSV and Parquet."""
