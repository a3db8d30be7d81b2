"""What a table is made of: CSV, Parquet, tables that commit by themselves, and names of columns."""
