"""A candidate in a process of its own, which carries out steps when it is told to.

What one framework leaves in a process, its threads, its allocator, its garbage to collect, would slow another down. The
process waits at its standard input, so it uses no processor while other candidates have their turn.
"""

import contextlib
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from .environments import OWN, interpreter
from .settings import ROOT


class Prepared(NamedTuple):
    """What a section's function `prepare` returns.

    Attributes:
        answer: what the candidate computes, for comparison with others: anything that JSON can hold.
        step: the thing to time.
        finish: waits for what a step returned: some candidates return before they have computed.
    """

    answer: Any
    step: Callable[[], Any]
    finish: Callable[[Any], Any] = float

    def seconds(self, count: int) -> float:
        """That many steps take so long."""
        step, result = self.step, None
        start = time.perf_counter()
        for _ in repeat(None, count):
            result = step()
        self.finish(result)
        return time.perf_counter() - start


class Worker:
    """A process that has called `prepare(*arguments)` of a section, and times its step on demand.

    Args:
        section: a module of this folder.
        arguments: anything that JSON can hold.
        environment: variables besides those of this process.
        launcher: a module that starts the process, and its arguments.

    Attributes:
        answer: of `Prepared`.
    """

    def __init__(
        self, section: str, *arguments: Any, environment: Mapping[str, str] | None = None, launcher: Sequence[str] = ()
    ) -> None:
        started = [word for module in [launcher, ("tests.performance.worker",)] if module for word in ("-m", *module)]
        program = [interpreter(arguments[0] if arguments else OWN), *started, section, json.dumps(arguments)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            program,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=pipe,
            stdout=pipe,
            stderr=self._errors,
            text=True,
        )
        try:
            self.answer = self._read()
        except BaseException:
            self.close()
            raise

    def __call__(self, count: int) -> float:
        """Seconds for that many steps."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return float(self._read())

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(f"the process of a candidate ended: {self._process.args!r}\n{self._errors.read()[-2000:]}")
        return json.loads(line)

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate("0\n")  # mpirun does not tell a rank that the input has ended
        self._errors.close()


@contextlib.contextmanager
def workers(
    section: str,
    arguments: Mapping[str, tuple[Any, ...]],
    environment: Mapping[str, Mapping[str, str]] | None = None,
    launchers: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[dict[str, Worker]]:
    """A process for each candidate, started in turn, so that nothing disturbs what one measures when it starts.

    Args:
        section: a module of this folder.
        arguments: of its `prepare`, by candidate.
        environment: variables of some candidates.
        launchers: of some candidates, see `Worker`.
    """
    with contextlib.ExitStack() as stack:
        found = {}
        for name, given in arguments.items():
            launcher = (launchers or {}).get(name, ())
            found[name] = Worker(section, *given, environment=(environment or {}).get(name), launcher=launcher)
            stack.callback(found[name].close)
        yield found


def _serve(section: str, arguments: list[Any]) -> None:
    """Prepare, answer, then time as many steps as each line of the standard input says."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints must not look like an answer

    def say(answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    prepared = importlib.import_module(f".{section}", __package__).prepare(*arguments)
    # What setting up has left behind, some frameworks' millions of objects, must not be searched for garbage while steps
    # that allocate Python objects are timed.
    gc.collect()
    gc.freeze()
    say(prepared.answer)
    for count in map(int, sys.stdin):
        if not count:
            break
        say(prepared.seconds(count))


if __name__ == "__main__":
    _serve(sys.argv[1], json.loads(sys.argv[2]))
