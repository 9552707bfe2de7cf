# mypy: implicit-reexport
"""`keras.config`: settings (dtypes, formats, the fuzz factor, limits for short trial runs, bars), and policies of dtypes: what
a layer computes in, and what it keeps its weights in.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn

from ..absent import hide_imports, late
from ..core.effects import clock
from ..types import as_dtype

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last", "bars": True}


def floatx() -> str:
    """The dtype of new weights.

    >>> floatx()
    'float32'
    """
    return _settings["floatx"]


def set_floatx(value: Any) -> None:
    """Make new weights 'float16', 'float32' or 'float64'.

    >>> tf.keras.backend.set_floatx("float64")
    >>> tf.keras.layers.Dense(1).dtype
    'float64'
    >>> tf.keras.backend.set_floatx("float32")
    """
    dtype = as_dtype(value)
    if not dtype.is_floating:
        raise ValueError(f"set_floatx: expected a float dtype, found {dtype.name}.")
    _settings["floatx"] = dtype.name
    clock.set()


def epsilon() -> float:
    """The fuzz factor that keeps logarithms and quotients finite.

    >>> epsilon()
    1e-07
    """
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Change the fuzz factor.

    >>> tf.keras.backend.set_epsilon(1e-5)
    >>> tf.keras.backend.epsilon()
    1e-05
    >>> tf.keras.backend.set_epsilon(1e-7)
    """
    _settings["epsilon"] = float(value)
    clock.set()


def image_data_format() -> str:
    """The position of the channels in new layers that are given none.

    >>> image_data_format()
    'channels_last'
    """
    return _settings["image_data_format"]


def set_image_data_format(data_format: str) -> None:
    """Set the default to 'channels_last' or 'channels_first'.

    >>> tf.keras.backend.set_image_data_format("channels_first")
    >>> tf.keras.layers.Conv2D(1, 3).data_format
    'channels_first'
    >>> tf.keras.backend.set_image_data_format("channels_last")
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"set_image_data_format: expected 'channels_last' or 'channels_first', found {data_format!r}.")
    _settings["image_data_format"] = data_format
    clock.set()


def backend() -> str:
    """'tensorflow', so that scripts that ask take the branch for TensorFlow, whose names this package has.

    >>> backend()
    'tensorflow'
    """
    return "tensorflow"


def max_epochs() -> int | None:
    """The most epochs that `fit` trains, None for no limit.

    >>> print(tf.keras.config.max_epochs())
    None
    """
    return _settings.get("max_epochs")


def set_max_epochs(max_epochs: int | None) -> None:
    """Limit the epochs of every `fit`, to try a script out; None for no limit.

    >>> set_max_epochs(2)
    >>> max_epochs()
    2
    >>> set_max_epochs(None)
    """
    _limit("max_epochs", max_epochs)


def max_steps_per_epoch() -> int | None:
    """The most batches that `fit`, `evaluate` and `predict` take in an epoch, None for no limit.

    >>> print(tf.keras.config.max_steps_per_epoch())
    None
    """
    return _settings.get("max_steps_per_epoch")


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Limit the batches of every epoch; None for no limit.

    >>> tf.keras.config.set_max_steps_per_epoch(5)
    >>> tf.keras.config.max_steps_per_epoch()
    5
    >>> tf.keras.config.set_max_steps_per_epoch(None)
    """
    _limit("max_steps_per_epoch", max_steps_per_epoch)


def _limit(name: str, value: int | None) -> None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"set_{name}: expected an int of at least 1 or None, found {value!r}.")
    _settings[name] = value


def disable_traceback_filtering() -> None:
    """Nothing: tracebacks are shown whole.

    >>> tf.keras.config.disable_traceback_filtering()
    >>> tf.keras.config.is_traceback_filtering_enabled()
    False
    """


def is_traceback_filtering_enabled() -> bool:
    """False: tracebacks are shown whole.

    >>> tf.keras.config.is_traceback_filtering_enabled()
    False
    """
    return False


def enable_unsafe_deserialization() -> NoReturn:
    """Refused: nothing in a file runs.

    >>> tf.keras.config.enable_unsafe_deserialization()
    Traceback (most recent call last):
        ...
    NotImplementedError: enable_unsafe_deserialization: code in a file never runs here. Register ...
    """
    raise NotImplementedError(
        "enable_unsafe_deserialization: code in a file never runs here. Register functions and classes that a model needs: "
        "keras.saving.register_keras_serializable, or load_model(path, custom_objects={...})."
    )


def enable_interactive_logging() -> None:
    """Let `fit` and the like draw bars where they can, which is the default.

    >>> tf.keras.config.enable_interactive_logging()
    >>> tf.keras.config.is_interactive_logging_enabled()
    True
    """
    _settings["bars"] = True


def disable_interactive_logging() -> None:
    """Have `fit` and the like write lines only.

    >>> tf.keras.utils.disable_interactive_logging()
    >>> tf.keras.utils.is_interactive_logging_enabled()
    False
    >>> tf.keras.utils.enable_interactive_logging()
    """
    _settings["bars"] = False


def is_interactive_logging_enabled() -> bool:
    """True if bars are drawn.

    >>> tf.keras.config.disable_interactive_logging()
    >>> tf.keras.config.is_interactive_logging_enabled()
    False
    >>> tf.keras.config.enable_interactive_logging()
    """
    return _settings["bars"]


def checked_format(data_format: str | None, owner: str = "") -> str:
    """The order of axes: the global one if None.

    Raises:
        ValueError: for another name; the message begins with the owner.
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(f"{owner}data_format must be 'channels_last' or 'channels_first', found {data_format!r}.")
    return data_format or image_data_format()


# Policies --------------------------------------------------------------------------------------------------------------


class DTypePolicy:
    """The dtypes of a layer: of its computation and of its weights.

    Args:
        name: a dtype for both, such as 'float32' or 'bfloat16'; or 'mixed_float16', 'mixed_bfloat16': computation in half
            precision over weights in float32. None: that of `global_policy`.

    Raises:
        ValueError: if there is no policy of that name.
        TypeError: if it is neither a name nor a dtype.

    Source: Micikevicius et al., Mixed Precision Training (2018), section 3.

    >>> policy = tf.keras.mixed_precision.DTypePolicy("mixed_float16")
    >>> policy.compute_dtype, policy.variable_dtype
    ('float16', 'float32')
    """

    def __init__(self, name: Any = None) -> None:
        name = global_policy().name if name is None else name
        try:
            dtype = as_dtype(name.removeprefix("mixed_") if isinstance(name, str) else name).name
        except (TypeError, ValueError):
            raise (ValueError if isinstance(name, str) else TypeError)(_unknown(name)) from None
        mixed = isinstance(name, str) and name.startswith("mixed_")
        if mixed and dtype not in ("float16", "bfloat16"):
            raise ValueError(_unknown(name))
        self._name = f"mixed_{dtype}" if mixed else dtype
        self._compute_dtype, self._variable_dtype = dtype, "float32" if mixed else dtype

    name = property(attrgetter("_name"), doc="The name from which it was made.")
    compute_dtype = property(attrgetter("_compute_dtype"), doc="The dtype of inputs, and of weights as they are read.")
    variable_dtype = property(attrgetter("_variable_dtype"), doc="The dtype of weights as they are kept.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self._name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        """A policy from `get_config`."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self._name}">'


Policy = FloatDTypePolicy = DTypePolicy


def _unknown(name: Any) -> str:
    return (
        f"Cannot convert {name!r} to a DTypePolicy: expected a dtype such as 'float32', or 'mixed_float16' or 'mixed_bfloat16'."
    )


def global_policy() -> DTypePolicy:
    """The policy of layers that are not given one: the one that was set, else the default float dtype for everything.

    >>> tf.keras.mixed_precision.global_policy()
    <DTypePolicy "float32">
    """
    return _settings.get("policy") or DTypePolicy(floatx())


def set_global_policy(policy: Any) -> None:
    """Choose the policy of layers that are made from now on.

    Args:
        policy: a DTypePolicy or its name; None returns to the default float dtype.

    >>> tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    >>> tf.keras.layers.Dense(2).compute_dtype
    'bfloat16'
    >>> tf.keras.mixed_precision.set_global_policy(None)
    """
    _settings["policy"] = None if policy is None else policy_of(policy)


dtype_policy, set_dtype_policy = global_policy, set_global_policy


def policy_of(identifier: Any) -> DTypePolicy:
    """The policy for None, a name, a dtype, a configuration or a policy.

    >>> tf.keras.dtype_policies.get("mixed_float16").compute_dtype
    'float16'
    """
    if identifier is None:
        return global_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict) and "config" in identifier:
        return DTypePolicy(**identifier["config"])
    return DTypePolicy(identifier)


_OF_OTHERS = ("DTypePolicy", "FloatDTypePolicy", "Policy", "checked_format", "global_policy", "policy_of", "set_global_policy")
hide_imports(globals(), *_OF_OTHERS)
__getattr__, __dir__ = late(__name__, {})
