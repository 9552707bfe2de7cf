"""`tf.name_scope`: a prefix for the names of the Variables made within it."""

from __future__ import annotations

from contextvars import ContextVar, Token

_prefix: ContextVar[str] = ContextVar("prefix", default="")


def scoped(name: str) -> str:
    """A name with the prefix of the scopes around it."""
    return _prefix.get() + name


class name_scope:
    """A context within which names of new `tf.Variable`s begin with its own; scopes nest. One that ends with '/' stands alone.

    Args:
        name: what the names begin with; None or '' for no prefix.

    >>> with tf.name_scope("encoder") as scope:
    ...     v = tf.Variable(1.0, name="scale")
    >>> print(scope, v.name)
    encoder/ encoder/scale:0
    """

    def __init__(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ValueError(f"name_scope: name must be a string, found {name!r:.80}.")
        self._name = name or ""
        self._tokens: list[Token[str]] = []

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    def __enter__(self) -> str:
        name = self._name
        whole = name if not name or name.endswith("/") else f"{_prefix.get()}{name}/"
        self._tokens.append(_prefix.set(whole))
        return whole

    def __exit__(self, *exception: object) -> None:
        _prefix.reset(self._tokens.pop())
