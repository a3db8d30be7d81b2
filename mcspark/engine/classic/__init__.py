"""A session whose driver is this process and the JVM that it talks to by py4j."""
