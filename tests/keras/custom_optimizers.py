"""Optimizers as people write them for Keras 3, as functions of the package: the same classes run on Keras and here.

Each uses another part of what Keras's base class offers.
"""


def made(keras, ops):
    """The classes by name."""
    base = keras.optimizers.Optimizer

    class Momentum(base):
        """The example of Keras's documentation: slots from references in a list."""

        def __init__(self, learning_rate=0.05, momentum=0.9, nesterov=False, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.momentum, self.nesterov = momentum, nesterov

        def build(self, variables):
            super().build(variables)
            self.momentums = []
            for variable in variables:
                self.momentums.append(self.add_variable_from_reference(reference_variable=variable, name="momentum"))

        def update_step(self, gradient, variable, learning_rate):
            learning_rate = ops.cast(learning_rate, variable.dtype)
            gradient = ops.cast(gradient, variable.dtype)
            m = self.momentums[self._get_variable_index(variable)]
            new = ops.subtract(ops.multiply(m, ops.cast(self.momentum, variable.dtype)), ops.multiply(gradient, learning_rate))
            self.assign(m, new)
            if self.nesterov:
                new = ops.subtract(ops.multiply(new, ops.cast(self.momentum, m.dtype)), ops.multiply(gradient, learning_rate))
            self.assign_add(variable, new)

        def get_config(self):
            config = super().get_config()
            config.update({"momentum": self.momentum, "nesterov": self.nesterov})
            return config

    class KerasAdam(base):
        """As in Keras itself: several names at once, bias corrections from `iterations`, amsgrad."""

        def __init__(self, learning_rate=0.05, beta_1=0.9, beta_2=0.99, epsilon=1e-7, amsgrad=True, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon, amsgrad

        def build(self, var_list):
            if self.built:
                return
            super().build(var_list)
            self._momentums, self._velocities = self.add_optimizer_variables(var_list, ["momentum", "velocity"])
            if self.amsgrad:
                self._velocity_hats = self.add_optimizer_variables(var_list, "velocity_hat")

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            gradient = ops.cast(gradient, variable.dtype)
            step = ops.cast(self.iterations + 1, variable.dtype)
            power_1 = ops.power(ops.cast(self.beta_1, variable.dtype), step)
            power_2 = ops.power(ops.cast(self.beta_2, variable.dtype), step)
            index = self._get_variable_index(variable)
            m, v = self._momentums[index], self._velocities[index]
            alpha = lr * ops.sqrt(1 - power_2) / (1 - power_1)
            self.assign_add(m, ops.multiply(ops.subtract(gradient, m), 1 - self.beta_1))
            self.assign_add(v, ops.multiply(ops.subtract(ops.square(gradient), v), 1 - self.beta_2))
            if self.amsgrad:
                hat = self._velocity_hats[index]
                self.assign(hat, ops.maximum(hat, v))
                v = hat
            self.assign_sub(variable, ops.divide(ops.multiply(m, alpha), ops.add(ops.sqrt(v), self.epsilon)))

    class KerasLion(base):
        """The sign of a mean; the learning rate asked for again by its method."""

        def __init__(self, learning_rate=0.01, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)

        def build(self, var_list):
            if self.built:
                return
            super().build(var_list)
            self._momentums = self.add_optimizer_variables(var_list, "momentum")

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(self._get_current_learning_rate(), variable.dtype)
            m = self._momentums[self._get_variable_index(variable)]
            self.assign_sub(variable, lr * ops.sign(m * 0.9 + gradient * (1.0 - 0.9)))
            self.assign(m, m * 0.99 + gradient * (1.0 - 0.99))

    class KerasAdafactor(base):
        """Slots of other shapes, made by `add_variable`, or Variables in a list; kernels and biases apart."""

        def __init__(self, learning_rate=0.05, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)

        def build(self, var_list):
            if self.built:
                return
            super().build(var_list)
            self._r, self._c, self._v = [], [], []
            for variable in var_list:
                shape = tuple(variable.shape)
                rows, columns = (shape[:-1], (*shape[:-2], shape[-1])) if len(shape) > 1 else ((), ())
                self._r.append(self.add_variable(shape=rows, name="row", dtype=variable.dtype))
                self._c.append(self.add_variable(shape=columns, name="column", dtype=variable.dtype))
                self._v.append(self.add_variable_from_reference(variable, "velocity"))
            self._own = [keras.Variable(0.0, name="own", trainable=False)]

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            step = ops.cast(self.iterations + 1, variable.dtype)
            index = self._get_variable_index(variable)
            r, c, v = self._r[index], self._c[index], self._v[index]
            rho = ops.minimum(lr, 1 / ops.sqrt(step))
            beta_2 = 1 - ops.power(step, -0.8)
            alpha = ops.maximum(0.001, ops.sqrt(ops.mean(ops.square(variable)))) * rho
            squared = ops.add(ops.square(gradient), 1e-30)
            if len(gradient.shape) > 1:
                self.assign(r, beta_2 * r + (1 - beta_2) * ops.mean(squared, axis=-1))
                self.assign(c, beta_2 * c + (1 - beta_2) * ops.mean(squared, axis=-2))
                factor = r / ops.mean(r, axis=-1, keepdims=True)
                self.assign(v, ops.expand_dims(factor, -1) * ops.expand_dims(c, -2))
            else:
                self.assign(v, beta_2 * v + (1 - beta_2) * squared)
            u = gradient / ops.sqrt(v)
            self.assign_add(self._own[0], 1.0)
            self.assign_add(variable, -alpha * u / ops.maximum(1.0, ops.sqrt(ops.mean(ops.square(u)))))

    class KerasNadam(base):
        """A Variable as an attribute, and what happens once in a step."""

        def __init__(self, learning_rate=0.05, beta_1=0.9, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.beta_1 = beta_1

        def build(self, var_list):
            if self.built:
                return
            super().build(var_list)
            self._momentums, self._velocities = self.add_optimizer_variables(var_list, ["momentum", "velocity"])
            self._u_product = keras.Variable(1.0, dtype=var_list[0].dtype, trainable=False, name="u_product")

        def _backend_update_step(self, grads, trainable_variables, learning_rate):
            decay = 1.0 - 0.5 * ops.power(0.96, ops.cast(self.iterations + 1, self._u_product.dtype))
            self.assign(self._u_product, self._u_product * self.beta_1 * decay)
            super()._backend_update_step(grads, trainable_variables, learning_rate)

        def update_step(self, gradient, variable, learning_rate):
            lr, step = ops.cast(learning_rate, variable.dtype), ops.cast(self.iterations + 1, variable.dtype)
            index = self._get_variable_index(variable)
            m, v, product = self._momentums[index], self._velocities[index], ops.cast(self._u_product, variable.dtype)
            now = self.beta_1 * (1.0 - 0.5 * ops.power(0.96, step))
            ahead = self.beta_1 * (1.0 - 0.5 * ops.power(0.96, step + 1))
            self.assign_add(m, (gradient - m) * (1 - self.beta_1))
            self.assign_add(v, (ops.square(gradient) - v) * (1 - 0.999))
            m_hat = ahead * m / (1 - product * ahead) + (1 - now) * gradient / (1 - product)
            self.assign_sub(variable, m_hat * lr / (ops.sqrt(v / (1 - ops.power(0.999, step))) + 1e-7))

    class KerasLamb(base):
        """Norms of whole weights, and `where`."""

        def __init__(self, learning_rate=0.05, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)

        def build(self, var_list):
            if self.built:
                return
            super().build(var_list)
            self._momentums = self.add_optimizer_variables(var_list, "momentum")
            self._velocities = self.add_optimizer_variables(var_list, "velocity")

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            step = ops.cast(self.iterations + 1, variable.dtype)
            index = self._get_variable_index(variable)
            m, v = self._momentums[index], self._velocities[index]
            self.assign_add(m, (gradient - m) * (1 - 0.9))
            self.assign_add(v, (ops.square(gradient) - v) * (1 - 0.999))
            m_hat = m / (1.0 - ops.power(ops.cast(0.9, variable.dtype), step))
            v_hat = ops.sqrt(v / (1.0 - ops.power(ops.cast(0.999, variable.dtype), step))) + 1e-7
            update = m_hat / v_hat
            w_norm = ops.sqrt(ops.sum(ops.square(variable)))
            u_norm = ops.sqrt(ops.sum(ops.square(update)))
            ratio = ops.where(w_norm > 0, ops.where(u_norm > 0, w_norm / u_norm, 1.0), 1.0)
            self.assign_sub(variable, ratio * lr * update)

    class AdaBelief(base):
        """Zhuang et al. (2020): the deviation of gradients from their mean; decay within the step."""

        def __init__(self, learning_rate=0.05, epsilon=1e-14, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.epsilon = epsilon

        def build(self, variables):
            super().build(variables)
            self._m = [self.add_variable_from_reference(v, name="m") for v in variables]
            self._s = [self.add_variable_from_reference(v, name="s", initializer="zeros") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            dtype = variable.dtype
            lr, step = ops.cast(learning_rate, dtype), ops.cast(self.iterations + 1, dtype)
            index = self._get_variable_index(variable)
            m, s = self._m[index], self._s[index]
            self.assign(m, 0.9 * m + 0.1 * gradient)
            self.assign(s, 0.999 * s + 0.001 * ops.square(gradient - m) + self.epsilon)
            m_hat = m / (1 - ops.power(ops.cast(0.9, dtype), step))
            s_hat = s / (1 - ops.power(ops.cast(0.999, dtype), step))
            self.assign_sub(variable, lr * m_hat / (ops.sqrt(s_hat) + self.epsilon))

    class Yogi(base):
        """Zaheer et al. (2018): additive changes of the second moment, which begins above 0."""

        def __init__(self, learning_rate=0.05, initial_accumulator_value=1e-3, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.initial_accumulator_value = initial_accumulator_value

        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            start = keras.initializers.Constant(self.initial_accumulator_value)
            self._m, self._v = self.add_optimizer_variables(variables, ["m", "v"], initializer=start)

        def update_step(self, gradient, variable, learning_rate):
            lr, index = ops.cast(learning_rate, variable.dtype), self._get_variable_index(variable)
            m, v, square = self._m[index], self._v[index], ops.square(gradient)
            self.assign(m, m * 0.9 + gradient * 0.1)
            self.assign_sub(v, ops.sign(v - square) * square * 0.01)
            self.assign_sub(variable, lr * m / (ops.sqrt(ops.abs(v)) + 1e-3))

    class PID(base):
        """An et al. (2018): proportional, integral and derivative terms of the gradient."""

        def __init__(self, learning_rate=0.05, integral=0.5, derivative=0.1, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.integral, self.derivative = integral, derivative

        def build(self, variables):
            super().build(variables)
            self.sums = self.add_optimizer_variables(variables, "integral")
            self.previous = self.add_optimizer_variables(variables, "previous")
            self.changes_seen = self.add_variable((), name="changes_seen", dtype="float32")

        def update_step(self, gradient, variable, learning_rate):
            index = self._get_variable_index(variable)
            total, previous = self.sums[index], self.previous[index]
            lr = ops.cast(learning_rate, variable.dtype)
            self.assign(total, 0.9 * total + gradient)
            change = ops.where(self.iterations > 0, gradient - previous, ops.zeros_like(gradient))
            self.assign_sub(variable, lr * (gradient + self.integral * total + self.derivative * change))
            self.assign(previous, gradient)
            self.assign_add(self.changes_seen, 1.0)

    class Lookahead(base):
        """Zhang et al. (2019): slow weights, to which the fast ones return at every third step."""

        def __init__(self, learning_rate=0.05, period=3, slow_step=0.5, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.period, self.slow_step = period, slow_step

        def build(self, variables):
            super().build(variables)
            self.slow = self.add_optimizer_variables(variables, "slow")
            for slow, variable in zip(self.slow, variables):  # noqa: B905
                slow.assign(variable)

        def update_step(self, gradient, variable, learning_rate):
            slow = self.slow[self._get_variable_index(variable)]
            fast = variable - ops.cast(learning_rate, variable.dtype) * gradient
            due = ops.equal((self.iterations + 1) % self.period, 0)
            new = slow + ops.where(due, self.slow_step * (fast - slow), ops.zeros_like(fast))
            self.assign(slow, new)
            self.assign(variable, ops.where(due, new, fast))

    class CentralizedSGD(keras.optimizers.SGD):
        """Yong et al. (2020): a step of the package's own on gradients without their mean."""

        def __init__(self, learning_rate=0.05, momentum=0.9, **kwargs):
            super().__init__(learning_rate=learning_rate, momentum=momentum, **kwargs)

        def update_step(self, gradient, variable, learning_rate):
            if len(gradient.shape) > 1:
                gradient = gradient - ops.mean(gradient, axis=0, keepdims=True)
            super().update_step(gradient, variable, learning_rate)

    from_keras = Momentum, KerasAdam, KerasLion, KerasAdafactor, KerasNadam, KerasLamb
    return {kind.__name__: kind for kind in (*from_keras, AdaBelief, Yogi, PID, Lookahead, CentralizedSGD)}


OPTIONS = {
    "plain": {},
    "weight_decay": {"weight_decay": 0.1},
    "clipnorm": {"clipnorm": 0.5},
    "clipvalue": {"clipvalue": 0.3},
    "global_clipnorm": {"global_clipnorm": 0.5},
    "average": {"use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2},
    "accumulation": {"gradient_accumulation_steps": 2},
    "scale": {"loss_scale_factor": 8.0},
}


def trajectory(keras, variable, kind, options, gradients, first):
    """Weights after each step, and all that the optimizer holds at the end."""
    rate = keras.optimizers.schedules.InverseTimeDecay(0.05, 2, 0.5) if options == "schedule" else None
    optimizer = kind(**({"learning_rate": rate} if rate else OPTIONS[options]))
    if options == "weight_decay":
        optimizer.exclude_from_weight_decay(var_names=["bias"])
    weights = [variable(value, name=name) for name, value in first.items()]
    steps = []
    for given in gradients:
        optimizer.apply(given, weights)
        steps.append([weight.numpy().tolist() for weight in weights])
    return steps, [float(abs(one.numpy()).sum()) for one in optimizer.variables]
