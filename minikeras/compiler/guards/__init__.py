"""The guards of a recording: the Python state that it depends on, compared before each replay."""
