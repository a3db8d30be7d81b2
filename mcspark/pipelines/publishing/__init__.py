"""What a run leaves behind: tables, report, manifest, summary line."""
