"""Section `ranks`: a step of `fit` on one rank and on two, with one thread each, and what a strategy costs on one rank.

A candidate on two ranks is the first of them; it tells the other how many steps follow.
"""

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .candidates import keras_model
from .executors import NATIVE, OWN, fit_options
from .problems import LEARNING_RATE
from .settings import Settings
from .worker import workers

SIZES, QUICK_SIZES = (784, 1024, 1024, 10), (16, 32, 10)
BATCH, STEPS = 1024, 32
"""Rows of all ranks together, and steps of an epoch."""
NONE, ONE, TWO = f"{OWN} fit", f"{OWN} fit, a strategy on one rank", f"{OWN} fit, two ranks"
CANDIDATES = {f"{name}{', native' * native}": (name, native) for native in (False, True) for name in (NONE, ONE, TWO)}
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def trainer(name: str, native: bool, quick: bool) -> Callable[[int], float]:
    """Trains for a number of epochs; the loss of the last one."""
    if not native:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]  # to importers: not installed
    import minikeras as tf

    tf.keras.utils.set_random_seed(0)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    sizes = QUICK_SIZES if quick else SIZES
    random = np.random.default_rng(0)
    x = random.standard_normal((STEPS * BATCH, sizes[0]), np.float32)
    y = random.integers(0, sizes[-1], STEPS * BATCH)
    scope = contextlib.nullcontext() if name == NONE else tf.keras.distribution.DataParallel().scope()
    with scope:
        model = keras_model(tf.keras, sizes)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        options = fit_options(NATIVE) if native else {}
        model.compile(tf.keras.optimizers.Adam(LEARNING_RATE), loss, **options)
    return lambda epochs: float(model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0).history["loss"][-1])


class Ranks:
    """A candidate on several ranks, or on one, for `worker.py`."""

    def __init__(self, train: Callable[[int], float]) -> None:
        self._train, self.answer = train, train(1)

    def seconds(self, count: int) -> float:
        """So many epochs take so long."""
        from minikeras.distribute.world import world

        world().broadcast(np.array([count]), 0)
        start = time.perf_counter()
        self._train(count)
        return time.perf_counter() - start

    def follow(self) -> None:
        """Take the epochs that the first rank is asked for, until it ends."""
        from minikeras.distribute.world import world

        while count := int(world().broadcast(np.array([0]), 0)[0]):
            self._train(count)


def prepare(name: str, native: bool, quick: bool) -> Ranks:
    """A candidate that has trained for an epoch; the answer is the loss then."""
    import atexit

    from minikeras.distribute.world import world

    ranks = world()  # its end is registered before what tells the others
    found = Ranks(trainer(name, native, quick))
    if ranks.rank:
        found.follow()
        sys.exit()
    atexit.register(lambda: ranks.broadcast(np.array([0]), 0))
    return found


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows of a step."""
    has_mpi = settings.has("mpi4py")
    chosen = {
        title: (name, native, settings.quick)
        for title, (name, native) in CANDIDATES.items()
        if (not native or settings.has(*NATIVE.needs)) and (name != TWO or has_mpi)
    }
    launchers = {title: ("minikeras.distribute.run", "-n", "2") for title, (name, *_) in chosen.items() if name == TWO}
    with workers("ranks", chosen, dict.fromkeys(chosen, THREADS), launchers) as processes:
        seconds = clock.compare(processes, settings.rounds, 0.0)
    each = {title: [one / STEPS for one in values] for title, values in seconds.items()}
    sizes = "-".join(map(str, QUICK_SIZES if settings.quick else SIZES))
    return clock.rows("ranks", f"step of fit, {sizes}, batch {BATCH} in all", each, list(chosen)[-1])
