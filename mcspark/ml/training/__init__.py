"""What grows trees: SynapseML, or the official LightGBM on the driver or in all executors."""
