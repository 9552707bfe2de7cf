"""Programs on a GPU: CUDA C written from the loop bodies that the other executors use too."""
