"""What layers with a kernel share: its options, those of the bias and the activation.

Next: `core.py` with Dense, `convolution.py`.
"""

from __future__ import annotations

from typing import Any

from .. import activations, constraints, initializers, regularizers
from .layer import Layer


class KernelLayer(Layer):
    """Base of layers that multiply by a kernel, add a bias and apply an activation.

    Args:
        activation: by name or as a function of a Tensor; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: first values, by name or object.
        kernel_regularizer, bias_regularizer, activity_regularizer: penalties added to the losses.
        kernel_constraint, bias_constraint: projections after each step.
        lora_rank, lora_alpha, quantization_config: not available; must be None.
        options: `name`, `dtype`, `trainable`, as in `Layer`.
    """

    _takes_one_tensor = True

    def __init__(
        self,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        refuse_absent(self, options)
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.kernel: Any = None
        self.bias: Any = None

    def activated(self, y: Any) -> Any:
        """The activation of a tensor, as `activation` is now: an attribute that may be set at any time."""
        return y if self.activation is None or self.activation is activations.linear else self.activation(y)

    def add_kernel(self, shape: tuple[int, ...], units: int) -> None:
        """Make the kernel, and the bias if there is one."""
        self.kernel = self.add_weight(
            shape,
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        if self.use_bias:
            self.bias = self.add_weight(
                (units,),
                self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="bias",
            )


def refuse_absent(layer: Any, options: dict[str, Any]) -> None:
    """Take options of Keras that are deliberately absent out of `options`; anything but None is an error."""
    for name in ("lora_rank", "lora_alpha", "quantization_config"):
        if options.pop(name, None) is not None:
            raise NotImplementedError(
                f"{type(layer).__name__}: {name} is not available: there is no low-rank adaptation and no quantization here. "
                "Leave it out; to train few weights, freeze layers with layer.trainable = False."
            )
