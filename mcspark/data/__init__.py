"""Tables in and out: the one reader, the row contract, the checked join, the split, the one writer."""
