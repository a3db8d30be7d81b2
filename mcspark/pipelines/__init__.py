"""The jobs: the only place where tables and calibrators meet, and where paths are known."""
