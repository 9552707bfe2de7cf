"""KerasTensors: tensors without values, calls of layers and functions on them, and how shapes of results are found."""
