"""What a run reads: tables, partitions, kept cells and saved models, up to rows that may be trusted."""
