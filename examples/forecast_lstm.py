"""A time series with an LSTM: forecast the next value of a noisy wave, then let it go on by its own forecasts."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

generator = np.random.default_rng(1)
time = np.arange(1_200)
clean = np.sin(time / 5) + 0.5 * np.sin(time / 17)
wave = (clean + 0.1 * generator.normal(size=time.size)).astype("float32")
windows = np.lib.stride_tricks.sliding_window_view(wave, 41)
x, y = windows[:, :40, None], windows[:, 40:]

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input((None, 1)), tf.keras.layers.LSTM(24), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.Adam(0.01), "mse")
model.fit(x[:900], y[:900], epochs=12, batch_size=32, verbose=0)

error = model.evaluate(x[900:], y[900:], verbose=0)
repeated = np.mean((y[901:] - y[900:-1]) ** 2)
print(f"mean squared error {error:.3f}, of repeating the last value {repeated:.3f}, of the noise alone 0.010")

series = list(wave[:1_000])
for _ in range(80):
    series.append(model(np.array(series[-40:])[None, :, None]).numpy().item())

figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
axes.plot(time[920:1_000], wave[920:1_000], color="grey", label="seen")
axes.plot(time[1_000:1_080], clean[1_000:1_080], "--", label="to come, without noise")
axes.plot(time[1_000:1_080], series[1_000:], label="80 forecasts, each from those before it")
axes.set(xlabel="time")
axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
figure.savefig("forecast_lstm.png")
