"""Interrupts at a chosen instruction of Python's bytecode, as Ctrl-C may come, and between two Variables of a step."""

import sys
from contextlib import contextmanager
from unittest.mock import patch

from minikeras import Variable


@contextmanager
def exchange_fails(number, kind=KeyboardInterrupt):
    """Within the block, the Variable of that number that an optimizer gives a new array raises; the block gets all of them."""
    exchange, calls = Variable.exchange, []

    def failing(self, array):
        calls.append(self)
        if len(calls) == number:
            raise kind
        exchange(self, array)

    with patch.object(Variable, "exchange", failing):
        yield calls


@contextmanager
def interrupt(function, number):
    """Within the block, KeyboardInterrupt comes before the instruction of that number of the function's first run."""
    left = number

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code is not function.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                frame.f_trace = None
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
