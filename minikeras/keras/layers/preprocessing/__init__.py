"""Layers that make numbers of the columns of tables. Loaded at their first use: `keras.layers` has their names."""
