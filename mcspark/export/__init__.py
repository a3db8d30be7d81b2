"""A saved model as SQL and as JSON, for whoever has neither Spark nor Python."""
