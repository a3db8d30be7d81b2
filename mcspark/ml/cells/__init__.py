"""From rows to cells: working columns, groups, signatures, levels and the group-by."""
