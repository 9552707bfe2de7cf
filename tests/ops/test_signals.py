"""`tf.signal` agrees with NumPy's transforms and with TensorFlow's frames and windows, and has gradients."""

import numpy as np
import pytest

import minikeras as tf

S = tf.signal
rng = np.random.default_rng(0)
real = rng.normal(size=(2, 3, 7))
spectrum = real + 1j * rng.normal(size=real.shape)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2d", "ifft2d"])
def test_complex_transforms_are_numpys(name):
    function, reference = getattr(S, name), getattr(np.fft, name.replace("d", ""))
    np.testing.assert_allclose(function(tf.constant(spectrum)), reference(spectrum))
    assert function(tf.constant(spectrum, tf.complex64)).dtype == tf.complex64
    np.testing.assert_allclose(function(real), reference(real), err_msg="real numbers are complex ones")
    assert function(real.astype("float32")).dtype == tf.complex64
    tf.test.check_gradients(lambda x: tf.abs(function(tf.complex(x, x * x))), tf.constant(real))


@pytest.mark.parametrize("length", [None, 4, 5, 7, 12])
@pytest.mark.parametrize("rank", [1, 2])
def test_transforms_of_real_numbers_are_numpys(rank, length):
    lengths, name = None if length is None else [4, length][-rank:], "" if rank == 1 else "2"
    forward, back = (getattr(S, one + (name and "2d")) for one in ("rfft", "irfft"))
    axes = tuple(range(-rank, 0))
    np.testing.assert_allclose(forward(real, lengths), np.fft.rfftn(real, lengths, axes), atol=1e-12)
    np.testing.assert_allclose(back(spectrum, lengths), np.fft.irfftn(spectrum, lengths, axes), atol=1e-12)
    whole = list(real.shape[-rank:])
    np.testing.assert_allclose(back(forward(real), tf.constant(whole)), real, atol=1e-12)
    tf.test.check_gradients(lambda x: tf.abs(forward(x, lengths)), tf.constant(real))
    tf.test.check_gradients(lambda x: back(tf.complex(x, x * x), lengths), tf.constant(real))


@pytest.mark.parametrize("axes", [None, 1, -1, [0, 2], [1, 1]])
def test_frequencies_are_shifted_as_by_numpy(axes):
    np.testing.assert_array_equal(S.fftshift(real, axes), np.fft.fftshift(real, axes))
    np.testing.assert_array_equal(S.ifftshift(real, axes), np.fft.ifftshift(real, axes))


@pytest.mark.parametrize(
    ("length", "periodic", "hann", "hamming"),
    [
        (4, True, [0, 0.5, 1, 0.5], [0.08, 0.54, 1, 0.54]),
        (4, False, [0, 0.75, 0.75, 0], [0.08, 0.77, 0.77, 0.08]),
        (5, True, [0, 0.5, 1, 0.5, 0], [0.08, 0.54, 1, 0.54, 0.08]),
        (1, True, [1], [1]),
        (0, False, [], []),
    ],
)
def test_windows_are_tensorflows(length, periodic, hann, hamming):
    np.testing.assert_allclose(S.hann_window(length, periodic), hann, atol=1e-7)
    np.testing.assert_allclose(S.hamming_window(length, periodic, tf.float64), hamming, atol=1e-12)
    assert S.hann_window(length, periodic, tf.float16).dtype == tf.float16


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((2, 2), [[0, 1], [2, 3]]),
        ((3, 1), [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        ((3, 2, True, 9), [[0, 1, 2], [2, 3, 4], [4, 9, 9]]),
        ((1, 3), [[0], [3]]),
        ((6, 1), np.zeros([0, 6])),
        ((6, 4, True), [[0, 1, 2, 3, 4, 0], [4, 0, 0, 0, 0, 0]]),
    ],
)
def test_frames_are_tensorflows(arguments, wanted):
    np.testing.assert_array_equal(S.frame(tf.range(5), *arguments), wanted)
    by_rows = S.frame(tf.stack([tf.range(5)] * 2, 1), *arguments, axis=0)
    np.testing.assert_array_equal(by_rows[..., 1], wanted)


def test_frames_are_added_up_where_they_overlap():
    x = tf.constant(rng.normal(size=(2, 3, 4)))
    for step in (1, 3, 4, 6):
        wanted = np.zeros((2, 2 * step + 4))
        for number in range(3):
            wanted[:, number * step : number * step + 4] += x[:, number]
        np.testing.assert_allclose(S.overlap_and_add(x, step), wanted)
    tf.test.check_gradients(lambda one: S.overlap_and_add(one, 3), x)


@pytest.mark.parametrize("window", [None, S.hann_window, S.hamming_window, lambda length, dtype: np.ones(length)])
@pytest.mark.parametrize(("length", "step", "size"), [(4, 2, None), (6, 2, 8), (5, 3, None), (4, 4, 4), (5, 2, 4)])
def test_a_short_time_transform_is_that_of_weighted_frames(window, length, step, size):
    x = tf.constant(rng.normal(size=(2, 21)), tf.float32)
    frames = S.frame(x, length, step, True)
    weights = 1.0 if window is None else np.asarray(window(length, dtype=tf.float32))
    n = size or {4: 4, 5: 8}[length]
    found = S.stft(x, length, step, size, window, True)
    np.testing.assert_allclose(found, np.fft.rfft(frames * weights, n), atol=1e-5)
    back = np.zeros((2, (found.shape[1] - 1) * step + length))
    inverse = np.pad(np.fft.irfft(found, n), [(0, 0), (0, 0), (0, 1)])[..., :length] * weights
    for number in range(found.shape[1]):
        back[:, number * step : number * step + length] += inverse[:, number]
    np.testing.assert_allclose(S.inverse_stft(found, length, step, size, window), back, atol=1e-5)


@pytest.mark.parametrize("forward", [S.hann_window, S.hamming_window])
@pytest.mark.parametrize(("length", "step"), [(8, 4), (8, 2), (8, 3), (9, 4)])
def test_a_short_time_transform_is_inverted(forward, length, step):
    x = tf.constant(rng.normal(size=45))
    inverse = S.inverse_stft_window_fn(step, forward)
    back = S.inverse_stft(S.stft(x, length, step, window_fn=forward), length, step, window_fn=inverse)
    np.testing.assert_allclose(back[length:-length], x[length : back.shape[0] - length], atol=1e-12)
    tf.test.check_gradients(lambda one: tf.abs(S.stft(one, length, step, window_fn=forward)), x)
    np.testing.assert_allclose(S.inverse_stft_window_fn(7)(5), [0, 2, 1, 2, 0], atol=1e-6)  # TensorFlow's


def test_transforms_are_recorded():
    x = tf.constant(real, tf.float32)
    program = tf.function(lambda one: S.inverse_stft(S.stft(one, 4, 2), 4, 2))
    np.testing.assert_array_equal(program(x), S.inverse_stft(S.stft(x, 4, 2), 4, 2))


def test_a_transform_is_a_step_of_a_model():
    signal = tf.keras.Input((21,))
    model = tf.keras.Model(signal, tf.abs(S.stft(signal, 4, 2)))
    x = tf.constant(rng.normal(size=(2, 21)), tf.float32)
    np.testing.assert_array_equal(model(x), tf.abs(S.stft(x, 4, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: S.fft(tf.constant(1j)), "needs 1 axes"),
        (lambda: S.rfft2d([1.0]), "rfft2d: needs 2 axes"),
        (lambda: S.rfft([1j]), "real numbers"),
        (lambda: S.fft([True]), "real numbers"),
        (lambda: S.rfft([1.0], [2, 3]), "fft_length needs 1"),
        (lambda: S.irfft([1j]), "above 0, found .0"),
        (lambda: S.frame([1.0], 0, 1), "must be positive"),
        (lambda: S.frame([1.0], 1, 1, axis=1), "axis 1 is out of range"),
        (lambda: S.overlap_and_add([1.0], 1), "needs .*frames, length"),
        (lambda: S.stft([1, 2], 2, 1), "stft: needs a float"),
        (lambda: S.hann_window(-1), "not negative"),
        (lambda: S.hamming_window(3, dtype=tf.int32), "floats"),
        (lambda: tf.signal.mfccs_from_log_mel_spectrograms, "compute with NumPy"),
        (lambda: tf.signal.kaiser_window, "window_fn"),
    ],
)
def test_mistakes_are_answered(call, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        call()
