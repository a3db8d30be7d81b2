"""Cells that stay in the cluster: what is measured of them there."""
