"""What a row must be: columns and types, the row contract, keys, the checked join, and what is rejected."""
