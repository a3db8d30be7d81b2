"""What a run finds out about its scores, and the limits that must hold."""
