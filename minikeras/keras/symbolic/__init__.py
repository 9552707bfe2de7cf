"""KerasTensors: tensors without values, calls of layers and functions on them, and how shapes of results are found."""

__all__: list[str] = []  # its files are not for users
