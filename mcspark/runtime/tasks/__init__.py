"""Python workers and the tasks that run in them: how rows reach them, and what they lack."""
