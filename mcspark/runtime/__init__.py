"""Everything about the process: session, jars, Java, logs, time limits."""
