"""A session whose driver is somewhere else, spoken to by Spark Connect."""
