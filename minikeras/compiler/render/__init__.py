"""Text of nests in the languages of targets."""
