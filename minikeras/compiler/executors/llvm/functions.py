"""Elementwise functions as LLVM instructions, by the names of NumPy's ufuncs. LLVM vectorizes all but calls of the C library.

Arithmetic gives NumPy's bits. exp, log and their kin are computed by formulas of their own, to the last digits.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Value = str
"""An operand of an instruction: a register such as %t3, or a constant."""

_WHOLE = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
TYPES = {"f": {4: "float", 8: "double"}, "b": {1: "i1"}, "i": _WHOLE, "u": _WHOLE}
KNOWN = {"f": (4, 8), "i": (4, 8), "b": (1,)}
"""Sizes of the dtypes that arrays of programs may have."""


def type_of(dtype: np.dtype[Any]) -> str:
    """LLVM's type for a value of a dtype."""
    return TYPES[dtype.kind][dtype.itemsize]


def has_type(dtype: np.dtype[Any]) -> bool:
    """True if LLVM has a type for values of a dtype."""
    return dtype.isnative and dtype.itemsize in TYPES.get(dtype.kind, ())


def is_known(dtype: np.dtype[Any]) -> bool:
    """True if kernels compute with a dtype."""
    return dtype.isnative and dtype.itemsize in KNOWN.get(dtype.kind, ())


def constant(number: float, kind: str) -> Value:
    """A float as a constant; LLVM writes floats of 32 bits as doubles of the same value."""
    if kind == "float":
        number = float(np.float32(number))
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


class Loop:
    """A loop that is being written.

    Attributes:
        index: the register that counts.
        done: the block behind it.
    """

    def __init__(self, to: Instructions, index: Value, done: str) -> None:
        self._to, self.index, self.done = to, index, done

    def leave(self, condition: Value) -> None:
        """End the loop where a condition holds."""
        on = self._to.name("on")
        self._to.do(f"br i1 {condition}, label %{self.done}, label %{on}")
        self._to.label(on)


class Instructions:
    """A list of instructions in the making.

    Attributes:
        lines: the instructions.
        declared: the intrinsic functions that they call.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._count, self._block = 0, "entry"

    def name(self, kind: str) -> str:
        """A new name."""
        self._count += 1
        return f"{kind}{self._count}"

    def add(self, line: str) -> Value:
        """Write an instruction that makes a value; its register."""
        register = "%" + self.name("t")
        self.lines.append(f"  {register} = {line}")
        return register

    def do(self, line: str) -> None:
        """Write an instruction without a value."""
        self.lines.append(f"  {line}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")
        self._block = name

    @contextlib.contextmanager
    def loop(self, start: Value = "0", stop: Value | None = None, hint: str = "") -> Iterator[Loop]:
        """Instructions for each integer from `start` on, below `stop` if that is given; `hint` is for the branch back."""
        before, look, body, back, done = self._block, *[self.name(one) for one in ("look", "body", "back", "done")]
        index = "%" + self.name("i")
        self.do(f"br label %{look}")
        self.label(look)
        self.do(f"{index} = phi i64 [ {start}, %{before} ], [ {index}n, %{back} ]")
        inside = "true" if stop is None else self.add(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {inside}, label %{body}, label %{done}")
        self.label(body)
        yield Loop(self, index, done)
        self.do(f"br label %{back}")
        self.label(back)
        self.do(f"{index}n = add nsw i64 {index}, 1\n  br label %{look}{hint}")
        self.label(done)

    @contextlib.contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Instructions where a condition holds."""
        inside, after = self.name("then"), self.name("after")
        self.do(f"br i1 {condition}, label %{inside}, label %{after}")
        self.label(inside)
        yield
        if not self.lines[-1].startswith("  ret"):
            self.do(f"br label %{after}")
        self.label(after)

    def intrinsic(self, name: str, kind: str, *operands: Value, flags: str = "") -> Value:
        """Call a function of LLVM whose operands and result have one type."""
        suffix = {"float": "f32", "double": "f64"}.get(kind, kind)
        self.declared.add(f"declare {kind} @llvm.{name}.{suffix}({', '.join([kind] * len(operands))})")
        return self.add(f"call {flags}{kind} @llvm.{name}.{suffix}({', '.join(f'{kind} {x}' for x in operands)})")


def function_text(head: str, to: Instructions, result: str = "void") -> str:
    """A function that carries instructions out and returns a result, a type and a value."""
    return "\n".join([f"define {head} {{", "entry:", *to.lines, f"  ret {result}", "}"])


def cast(to: Instructions, x: Value, dtype: np.dtype[Any], wanted: np.dtype[Any]) -> Value:
    """A value in another dtype, as NumPy's `astype`; KeyError for a float that is to be an integer."""
    if dtype == wanted:
        return x
    old, new = type_of(dtype), type_of(wanted)
    if wanted.kind == "b":
        return to.add(f"fcmp une {old} {x}, 0.0" if dtype.kind == "f" else f"icmp ne {old} {x}, 0")
    if old == new:  # with another sign
        return x
    wider = wanted.itemsize > dtype.itemsize
    kinds = {
        "uf": "uitofp",
        **dict.fromkeys(["ui", "uu"], "zext" if wider else "trunc"),
        "iu": "sext" if wider else "trunc",
        "ff": "fpext" if wider else "fptrunc",
        "if": "sitofp",
        "bf": "uitofp",
        "ii": "sext" if wider else "trunc",
        "bi": "zext",
    }
    return to.add(f"{kinds[dtype.kind + wanted.kind]} {old} {x} to {new}")


# Formulas ------------------------------------------------------------------------------------------------------------------
#
# x = k log 2 + r with whole k and |r| <= log(2) / 2, so exp(x) = 2**k exp(r), and exp(r) - 1 is a short polynomial.
# log(x) = k log 2 + log(m) with sqrt(1/2) <= m < sqrt(2), and log(m) is a series in (m - 1) / (m + 1).
#
# Source: Cody and Waite, Software Manual for the Elementary Functions (1980), chapters 5 and 6; the constants are those of
# fdlibm, for float32 those of Cephes.


class Floats:
    """Arithmetic in one type, as short as a formula; a product and a sum may be fused with one rounding.

    Args:
        to: where the instructions go.
        kind: float or double.
    """

    def __init__(self, to: Instructions, kind: str) -> None:
        self.to, self.kind = to, kind
        self.bits = "i32" if kind == "float" else "i64"
        self.mantissa, self.bias = (23, 127) if kind == "float" else (52, 1023)
        self.single = kind == "float"

    def of(self, x: Value | float) -> Value:
        """A constant, or the value itself."""
        return x if isinstance(x, str) else constant(x, self.kind)

    def op(self, name: str, a: Value | float, b: Value | float) -> Value:
        """fadd, fsub, fmul or fdiv."""
        return self.to.add(f"{name} contract {self.kind} {self.of(a)}, {self.of(b)}")

    def exactly(self, name: str, a: Value | float, b: Value | float) -> Value:
        """The same, not fused with others."""
        return self.to.add(f"{name} {self.kind} {self.of(a)}, {self.of(b)}")

    def fma(self, a: Value | float, b: Value | float, c: Value | float) -> Value:
        """a b + c."""
        return self.op("fadd", self.op("fmul", a, b), c)

    def polynomial(self, x: Value, coefficients: list[float]) -> Value:
        """The coefficients from the highest power down."""
        value = self.of(coefficients[0])
        for one in coefficients[1:]:
            value = self.fma(value, x, one)
        return value

    def test(self, condition: str, a: Value | float, b: Value | float) -> Value:
        """A comparison."""
        return self.to.add(f"fcmp {condition} {self.kind} {self.of(a)}, {self.of(b)}")

    def select(self, condition: Value, a: Value | float, b: Value | float) -> Value:
        """a where the condition holds, else b."""
        return self.to.add(f"select i1 {condition}, {self.kind} {self.of(a)}, {self.kind} {self.of(b)}")

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """x within bounds; NaN becomes the upper one."""
        x = self.select(self.test("ogt", x, low), x, self.select(self.test("ule", x, low), low, x))
        return self.select(self.test("olt", x, high), x, high)

    def power_of_two(self, k: Value) -> Value:
        """2**k, put together from its bits, for k whose power is a normal number."""
        biased = self.to.add(f"add {self.bits} {k}, {self.bias}")
        return self.to.add(f"bitcast {self.bits} {self.to.add(f'shl {self.bits} {biased}, {self.mantissa}')} to {self.kind}")

    def halves(self, k: Value) -> tuple[Value, Value]:
        """Two whole numbers, half of k each: the powers of both are normal numbers, where that of k may not be one."""
        half = self.to.add(f"ashr {self.bits} {k}, 1")
        return half, self.to.add(f"sub {self.bits} {k}, {half}")

    def minus(self, k: Value) -> Value:
        """-k."""
        return self.to.add(f"sub {self.bits} 0, {k}")

    def reduced(self, x: Value) -> tuple[Value, Value]:
        """k as an integer, and exp(r) - 1."""
        high, low = (0.693359375, -2.12194440e-4) if self.single else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
        whole = self.to.intrinsic("rint", self.kind, self.exactly("fmul", x, 1.0 / math.log(2.0)))
        r = self.fma(whole, -low, self.fma(whole, -high, x))
        p = self.polynomial(r, _EXP_SINGLE if self.single else _EXP_DOUBLE)
        k = self.to.add(f"fptosi {self.kind} {whole} to {self.bits}")
        return k, self.fma(self.op("fmul", r, r), p, r)


_EXP_SINGLE = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
_EXP_DOUBLE = [1.0 / math.factorial(n) for n in range(13, 1, -1)]
_LOG_SINGLE = [0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693]
_LOG_DOUBLE = [
    *(1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01),
    *(2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01),
]


def _exp(f: Floats, x: Value) -> Value:
    """e**x; x is kept where the result is neither zero nor infinite yet."""
    low, high = (-104.0, 89.0) if f.single else (-746.0, 710.0)
    k, p = f.reduced(f.clamp(x, low, high))
    first, second = f.halves(k)
    y = f.exactly("fmul", f.op("fadd", 1.0, p), f.power_of_two(first))
    y = f.exactly("fmul", y, f.power_of_two(second))
    return f.select(f.test("uno", x, x), x, y)


def _expm1(f: Floats, x: Value) -> Value:
    """e**x - 1, accurate also near zero: ((exp(r) - 1) + (1 - 2**-k)) 2**k."""
    low, high = (-20.0, 89.0) if f.single else (-50.0, 710.0)
    k, p = f.reduced(f.clamp(x, low, high))
    first, second = f.halves(k)
    inverse = f.exactly("fmul", f.power_of_two(f.minus(first)), f.power_of_two(f.minus(second)))
    y = f.exactly("fadd", p, f.exactly("fsub", 1.0, inverse))
    y = f.exactly("fmul", f.exactly("fmul", y, f.power_of_two(first)), f.power_of_two(second))
    unchanged = f.to.add(f"or i1 {f.test('uno', x, x)}, {f.test('oeq', x, 0.0)}")
    return f.select(unchanged, x, y)


def _tanh(f: Floats, x: Value) -> Value:
    """(e**2x - 1) / (e**2x + 1)."""
    limit = 10.0 if f.single else 22.0
    kept = f.clamp(x, -limit, limit)
    e = _expm1(f, f.exactly("fadd", kept, kept))
    y = f.exactly("fdiv", e, f.exactly("fadd", e, 2.0))
    unchanged = f.to.add(f"or i1 {f.test('uno', x, x)}, {f.test('oeq', x, 0.0)}")
    return f.select(unchanged, x, y)


def _log(f: Floats, x: Value) -> Value:
    """log(x); subnormal numbers are first made normal ones."""
    to, bits, mantissa = f.to, f.bits, f.mantissa
    tiny = f.test("olt", x, 2.0 ** (1 - f.bias))
    scaled = f.select(tiny, f.exactly("fmul", x, 2.0 ** (mantissa + 2)), x)
    raw = to.add(f"bitcast {f.kind} {scaled} to {bits}")
    # sqrt(1/2) as bits: the subtraction below makes m lie in [sqrt(1/2), sqrt(2)).
    root = struct.unpack("<i" if f.single else "<q", struct.pack("<f" if f.single else "<d", math.sqrt(0.5)))[0]
    k = to.add(f"ashr {bits} {to.add(f'sub {bits} {raw}, {root}')}, {mantissa}")
    m = to.add(f"bitcast {bits} {to.add(f'sub {bits} {raw}, ' + to.add(f'shl {bits} {k}, {mantissa}'))} to {f.kind}")
    k = to.add(f"sub {bits} {k}, {to.add(f'select i1 {tiny}, {bits} {mantissa + 2}, {bits} 0')}")
    whole = to.add(f"sitofp {bits} {k} to {f.kind}")
    g = f.exactly("fsub", m, 1.0)
    s = f.op("fdiv", g, f.op("fadd", g, 2.0))
    z = f.op("fmul", s, s)
    series = f.op("fmul", z, f.polynomial(z, _LOG_SINGLE if f.single else _LOG_DOUBLE))
    half = f.op("fmul", f.op("fmul", g, g), 0.5)
    high, low = (6.9313812256e-01, 9.0580006145e-06) if f.single else (6.93147180369123816490e-01, 1.90821492927058770002e-10)
    tail = f.fma(s, f.op("fadd", half, series), f.op("fmul", whole, low))
    y = f.fma(whole, high, f.op("fsub", g, f.op("fsub", half, tail)))
    y = f.select(f.test("oeq", x, 0.0), -math.inf, y)
    y = f.select(f.test("olt", x, 0.0), math.nan, y)
    return f.select(f.to.add(f"or i1 {f.test('uno', x, x)}, {f.test('oeq', x, math.inf)}"), x, y)


def _log1p(f: Floats, x: Value) -> Value:
    """log(u) + (x - (u - 1)) / u with u = 1 + x rounded."""
    u = f.exactly("fadd", x, 1.0)
    lost = f.exactly("fdiv", f.exactly("fsub", x, f.exactly("fsub", u, 1.0)), u)
    whole = f.to.add(f"or i1 {f.test('oeq', u, 0.0)}, {f.test('oeq', u, math.inf)}")
    y = f.exactly("fadd", _log(f, u), f.select(whole, 0.0, lost))
    return f.select(f.test("oeq", x, 0.0), x, y)


def _sign(f: Floats, x: Value) -> Value:
    zero = f.select(f.test("oeq", x, 0.0), 0.0, x)
    return f.select(f.test("ogt", x, 0.0), 1.0, f.select(f.test("olt", x, 0.0), -1.0, zero))


def _larger(condition: str) -> Callable[..., Value]:
    """The larger or smaller of two; NaN if one of them is."""

    def emit(f: Floats, a: Value, b: Value) -> Value:
        takes_a = f.to.add(f"or i1 {f.test(condition, a, b)}, {f.test('uno', a, a)}")
        return f.select(takes_a, a, b)

    return emit


def _arithmetic(name: str) -> Callable[..., Value]:
    return lambda f, a, b: f.exactly(name, a, b)


def _called(name: str) -> Callable[..., Value]:
    return lambda f, *operands: f.to.intrinsic(name, f.kind, *operands)


def _compared(condition: str) -> Callable[..., Value]:
    return lambda f, a, b: f.test(condition, a, b)


_CONDITIONS = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
FLOATS: dict[str, Callable[..., Value]] = {
    **{"add": _arithmetic("fadd"), "subtract": _arithmetic("fsub"), "multiply": _arithmetic("fmul")},
    **{"divide": _arithmetic("fdiv"), "negative": lambda f, x: f.to.add(f"fneg {f.kind} {x}"), "positive": lambda f, x: x},
    **{"square": lambda f, x: f.exactly("fmul", x, x), "reciprocal": lambda f, x: f.exactly("fdiv", 1.0, x)},
    **{name: _called(name) for name in ("sqrt", "fabs", "floor", "ceil", "rint", "trunc", "sin", "cos")},
    **{"absolute": _called("fabs"), "power": _called("pow"), "sign": _sign},
    **{"maximum": _larger("oge"), "minimum": _larger("ole")},
    **{"exp": _exp, "expm1": _expm1, "tanh": _tanh, "log": _log, "log1p": _log1p},
    **{name: _compared(condition) for name, condition in _CONDITIONS.items()},
    "isnan": lambda f, x: f.test("uno", x, x),
    "isinf": lambda f, x: f.test("oeq", f.to.intrinsic("fabs", f.kind, x), math.inf),
    "isfinite": lambda f, x: f.test("one", f.to.intrinsic("fabs", f.kind, x), math.inf),
}
"""Functions of floats."""

INTEGERS: dict[str, str] = {
    **{"add": "add", "subtract": "sub", "multiply": "mul"},
    **{"equal": "icmp eq", "not_equal": "icmp ne", "less": "icmp slt", "less_equal": "icmp sle"},
    **{"greater": "icmp sgt", "greater_equal": "icmp sge", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"},
}
"""Functions of signed integers of one size: one instruction each."""

UNSIGNED = {
    name: INTEGERS[name] for name in ("add", "subtract", "multiply", "equal", "bitwise_and", "bitwise_or", "bitwise_xor")
}
UNSIGNED |= {"right_shift": "lshr", "left_shift": "shl"}
"""Of unsigned integers."""

TRUTHS: dict[str, str] = {
    **{"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and", "bitwise_or": "or"},
    **{"bitwise_xor": "xor", "equal": "icmp eq", "not_equal": "icmp ne", "add": "or", "multiply": "and"},
}
"""Functions of bools."""

LIBRARY = frozenset(["sin", "cos", "power"])
"""Functions of the C library, one element at a time: for large arrays NumPy's own vectorized ones are faster."""


def apply(to: Instructions, function: str, dtype: np.dtype[Any], operands: list[Value]) -> Value:
    """The result of a function of operands of one dtype.

    Raises:
        KeyError: if there is none for the dtype.
    """
    if dtype.kind == "f":
        return FLOATS[function](Floats(to, type_of(dtype)), *operands)
    kind = type_of(dtype)
    if function == "logical_not":
        return to.add(f"xor i1 {operands[0]}, true") if kind == "i1" else to.add(f"icmp eq {kind} {operands[0]}, 0")
    table = TRUTHS if kind == "i1" else UNSIGNED if dtype.kind == "u" else INTEGERS
    instruction = table[function]
    a, b = operands
    return to.add(f"{instruction} {kind} {a}, {b}")
