"""Which memory the results of a program get."""
