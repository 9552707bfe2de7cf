"""Functions in threads of their own, for which nothing waits without a limit."""

import threading

PATIENCE = 60.0
"""Seconds after which threads count as hung."""


def in_threads(*functions):
    """Run each function in a thread; all begin together, and none may hang or raise."""
    errors = errors_in_threads(*functions)
    if errors:
        raise errors[0]


def errors_in_threads(*functions):
    """The errors that functions raise, each in a thread; none may hang."""
    begin, errors = threading.Barrier(len(functions)), []

    def run(function):
        try:
            begin.wait(timeout=PATIENCE)
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    return errors
