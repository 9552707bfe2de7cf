"""Code generation: the text of nests in the languages of targets."""
