"""What mcspark needs of Spark below its DataFrames: an interface, and an implementation a kind of session."""
