"""How the ensembles are trained on cells, and how long."""
