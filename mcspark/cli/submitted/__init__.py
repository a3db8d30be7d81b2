"""What ``spark-submit`` runs for the command ``mcspark``; Python adds this folder to its path."""
