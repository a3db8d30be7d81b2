"""The American Community Survey: its columns by year, its prediction tasks, and a synthetic likeness."""
