"""Training. May import all of keras below its models. Read `steps.py` first, then `trainer.py`, then `state.py`."""
