"""The contract of recordings, over small programs whose Python facts change between calls.

Each is noticed at the next call, stays eager with a warning, or is a constant that the guide lists. There is no fourth kind.
"""

from __future__ import annotations

import builtins
import decimal
import random
import sys
import textwrap
import time
import types

import numpy as np
import pytest

import minikeras as tf

BOX = (
    "class Box:\n    k = 2.0\n    def times(self, x): return x * self.k\n"
    "    def __call__(self, x): return x * self.k\nbox = Box()"
)
OWN = "class Own:\n    def __init__(self): self.k = self.k0 = 2.0\nown = Own()"
LAYER = """
class Scale(tf.keras.layers.Layer):
    rate = 2.0
    def __init__(self):
        super().__init__()
        self.k, self.k0, self.held, self.table = 2.0, 2.0, [2.0], {"k": 2.0}
    def call(self, x): return x * EXPRESSION
layer = Scale()"""
GRADIENT = """
v = tf.Variable([1.0, 2.0])
def gradient(x):
    with tf.GradientTape() as tape: y = tf.reduce_sum(v * x)
    g = tape.gradient(y, v)
    return x if g is None else g * 2.0"""


def layer(expression):
    return LAYER.replace("EXPRESSION", expression)


# Name of the program: (what is there before, the result of the function, the change)
GLOBALS = {
    "a number": ("k = 2.0", "x * k", "k = 3.0"),
    "the sign of zero": ("k = 0.0", "tf.constant(1.0) / (x * k)", "k = -0.0"),
    "a number of another type": ("k = 2", "x * (3.0 if isinstance(k, float) else 2.0)", "k = 2.0"),
    "a string": ("k = 'a'", "x * (2.0 if k == 'a' else 3.0)", "k = 'b'"),
    "a flag": ("k = False", "x * (3.0 if k else 2.0)", "k = True"),
    "None": ("k = None", "x * (k or 2.0)", "k = 3.0"),
    "a tuple": ("k = (2.0, 1)", "x * k[0]", "k = (3.0, 1)"),
    "a tuple of a list": ("k = ([2.0], 1)", "x * k[0][0]", "k[0][0] = 3.0"),
    "an element": ("k = [2.0]", "x * k[0]", "k[0] = 3.0"),
    "one more element": ("k = [2.0]", "x * sum(k)", "k.append(1.0)"),
    "one element less": ("k = [2.0, 1.0]", "x * sum(k)", "k.pop()"),
    "elements in another order": ("k = [2.0, 3.0]", "x * k[0]", "k.reverse()"),
    "a long list": ("k = [2.0] * 900", "x * k[500]", "k[500] = 3.0"),
    "a list in a list": ("k = [[2.0]]", "x * k[0][0]", "k[0][0] = 3.0"),
    "a list in a dict in a list": ("k = [{'a': [2.0]}]", "x * k[0]['a'][0]", "k[0]['a'][0] = 3.0"),
    "a value of a dict": ("k = {'a': 2.0}", "x * k['a']", "k['a'] = 3.0"),
    "one more key": ("k = {'a': 2.0}", "x * (len(k) + 1.0)", "k['b'] = 0.0"),
    "a key that is asked for": ("k = {}", "x * k.get('a', 2.0)", "k['a'] = 3.0"),
    "the order of keys": ("k = {'a': 2.0, 'b': 3.0}", "x * k[next(iter(k))]", "k['a'] = k.pop('a')"),
    "a defaultdict": ("import collections as c; k = c.defaultdict(float, a=2.0)", "x * k['a']", "k['a'] = 3.0"),
    "a Counter": ("import collections as c; k = c.Counter('aa')", "x * float(k['a'])", "k.update('a')"),
    "an OrderedDict": ("import collections as c; k = c.OrderedDict(a=2.0)", "x * k['a']", "k['a'] = 3.0"),
    "a ChainMap": ("import collections as c; k = c.ChainMap({}, {'a': 2.0})", "x * k['a']", "k['a'] = 3.0"),
    "a UserDict": ("import collections as c; k = c.UserDict(a=2.0)", "x * k['a']", "k['a'] = 3.0"),
    "a UserList": ("import collections as c; k = c.UserList([2.0])", "x * k[0]", "k[0] = 3.0"),
    "a read-only dict": ("import types; d = {'a': 2.0}; k = types.MappingProxyType(d)", "x * k['a']", "d['a'] = 3.0"),
    "a view of a dict": ("d = {'a': 2.0}; k = d.values()", "x * sum(k)", "d['b'] = 1.0"),
    "a set": ("k = {2.0}", "x * sum(k)", "k.add(1.0)"),
    "a deque": ("import collections as c; k = c.deque([2.0])", "x * k[-1]", "k.append(3.0)"),
    "an array": ("k = np.array([2.0, 2.0], 'f')", "x * k", "k[0] = 3.0"),
    "an array of one number": ("k = np.array(2.0)", "x * float(k)", "k.fill(3.0)"),
    "a view of an array": ("a = np.full(4, 2.0, 'f'); k = a[::2]", "x * k", "a.fill(3.0)"),
    "the shape of an array": ("k = np.ones((1, 2), 'f')", "x * float(k.shape[0])", "k.resize((2, 1))"),
    "whether an array can be written": (
        "k = np.ones(1)",
        "x * (2.0 if k.flags.writeable else 3.0)",
        "k.flags.writeable = False",
    ),
    "rows in a masked array": ("k = np.ma.array([2.0, 4.0])", "x * float(k.sum())", "k.mask = [0, 1]"),
    "an array of objects": ("k = np.array([2.0, 'a'], object)", "x * k[0]", "k[0] = 3.0"),
    "an array of text": ("k = np.array(['2'])", "x * float(k[0])", "k[0] = '3'"),
    "bytes that change": ("k = bytearray(b'\\2')", "x * float(k[0])", "k[0] = 3"),
    "an array of Python's": ("import array; k = array.array('d', [2.0])", "x * k[0]", "k[0] = 3.0"),
    "a memoryview": ("b = bytearray(b'\\2'); k = memoryview(b)", "x * float(k[0])", "b[0] = 3"),
    "a number of NumPy's": ("k = np.float32(2.0)", "x * k", "k = np.float32(3.0)"),
    "a tensor": ("k = tf.constant(2.0)", "x * k", "k = tf.constant(3.0)"),
    "a Variable, another one": ("k = tf.Variable(2.0)", "x * k", "k = tf.Variable(3.0)"),
    "whether a Variable is trained": (GRADIENT, "gradient(x)", "v.trainable = False"),
    "a member of an enum": ("import enum\nclass M(enum.Enum):\n    A = 2.0\n    B = 3.0\nk = M.A", "x * k.value", "k = M.B"),
    "a slice": ("k = slice(0, 1)", "x[k]", "k = slice(1, 2)"),
    "a range": ("k = range(2)", "x * float(len(k))", "k = range(3)"),
    "a name that comes later": ("def f(x):\n    try: return x * k\n    except NameError: return x", "f(x)", "k = 3.0"),
    "a name of Python's that is hidden": ("", "x * sum([2.0])", "sum = lambda values: 3.0"),
    "a name that goes": ("sum = lambda values: 3.0", "x * sum([2.0])", "del sum"),
    "a name in globals()": ("k = 2.0", "x * globals()['k']", "k = 3.0"),
    "a module": ("import types; m = types.ModuleType('m'); m.k = 2.0", "x * m.k", "m.k = 3.0"),
    "a module that is imported within": (
        "import sys, types; m = sys.modules['of_a_program'] = types.ModuleType('of_a_program'); m.k = 2.0\n"
        "def f(x):\n    import of_a_program\n    return x * of_a_program.k",
        *("f(x)", "m.k = 3.0"),
    ),
    "the environment": (
        "import os; os.environ['OF_A_PROGRAM'] = '2'",
        *("x * float(os.environ['OF_A_PROGRAM'])",) * 1,
        "os.environ['OF_A_PROGRAM'] = '3'",
    ),
    "a context variable": ("import contextvars; k = contextvars.ContextVar('k', default=2.0)", "x * k.get()", "k.set(3.0)"),
    "an attribute of a thread": ("import threading; t = threading.local(); t.k = 2.0", "x * t.k", "t.k = 3.0"),
    "a setting of Keras": ("", "x * tf.keras.config.epsilon()", "tf.keras.config.set_epsilon(1e-3)"),
}
FUNCTIONS = {
    "another function": ("def f(x): return x * 2.0", "f(x)", "def f(x): return x * 3.0"),
    "a global of a helper": ("k = 2.0\ndef f(x): return x * k", "f(x)", "k = 3.0"),
    "a global of a helper of a helper": ("k = 2.0\ndef g(x): return x * k\ndef f(x): return g(x)", "f(x)", "k = 3.0"),
    "a global in a nested function": ("k = 2.0\ndef f(x):\n    def g(): return x * k\n    return g()", "f(x)", "k = 3.0"),
    "a global in a comprehension": ("k = 2.0", "sum([x * k for _ in range(1)])", "k = 3.0"),
    "a global in a generator": ("k = 2.0\ndef g(x): yield x * k", "sum(g(x))", "k = 3.0"),
    "a variable around": (
        "def make():\n    k = 2.0\n    def f(x): return x * k\n    def put(v):\n"
        "        nonlocal k\n        k = v\n    return f, put\nf, put = make()",
        *("f(x)", "put(3.0)"),
    ),
    "a list around": ("def make(k): return lambda x: x * k[0]\nheld = [2.0]; f = make(held)", "f(x)", "held[0] = 3.0"),
    "a default": ("def f(x, k=2.0): return x * k", "f(x)", "f.__defaults__ = (3.0,)"),
    "a list for a default": ("def f(x, k=[2.0]): return x * k[0]", "f(x)", "f.__defaults__[0][0] = 3.0"),
    "a default by name": ("def f(x, *, k=2.0): return x * k", "f(x)", "f.__kwdefaults__['k'] = 3.0"),
    "defaults by name, others": ("def f(x, *, k=2.0): return x * k", "f(x)", "f.__kwdefaults__ = {'k': 3.0}"),
    "the code of a function": ("def f(x): return x * 2.0", "f(x)", "f.__code__ = (lambda x: x * 3.0).__code__"),
    "an attribute of a function": ("def f(x): return x * f.k\nf.k = 2.0", "f(x)", "f.k = 3.0"),
    "a new attribute of a function": ("def f(x): return x * getattr(f, 'k', 2.0)", "f(x)", "f.k = 3.0"),
    "what a decorator wraps": (
        "import functools\nk = [2.0]\ndef d(g):\n    @functools.wraps(g)\n"
        "    def w(x): return g(x)\n    return w\n@d\ndef f(x): return x * k[0]",
        *("f(x)", "k[0] = 3.0"),
    ),
    "a wrapped function, another one": (
        "def d(g):\n    def w(x): return w.inner(x)\n    w.inner = g\n    return w\nf = d(lambda x: x * 2.0)",
        *("f(x)", "f.inner = lambda x: x * 3.0"),
    ),
    "a function in a dict": ("t = {'f': lambda x: x * 2.0}", "t['f'](x)", "t['f'] = lambda x: x * 3.0"),
    "a global of a function in a list": ("k = 2.0; fs = [lambda x: x * k]", "fs[0](x)", "k = 3.0"),
    "an argument of a partial": (
        "import functools; f = functools.partial(lambda k, x: x * k[0], [2.0])",
        "f(x)",
        "f.args[0][0] = 3.0",
    ),
    "a keyword of a partial": (
        "import functools; f = functools.partial(lambda x, k: x * k, k=2.0)",
        "f(x)",
        "f.keywords['k'] = 3.0",
    ),
    "what a cache was made of": (
        "import functools\nk = [2.0]\n@functools.lru_cache\ndef f(): return k[0]",
        *("x * f()", "k[0] = 3.0; f.cache_clear()"),
    ),
    "the text of a function": ("def f(x): return x * float(f.__doc__)\nf.__doc__ = '2'", "f(x)", "f.__doc__ = '3'"),
    "the name of a function": (
        "def g(): pass\ndef f(x): return x * float(len(g.__name__))",
        *("f(x)", "g.__name__ = 'of_g'"),
    ),
    "a parameter of a decorator": (
        "import functools\nrates = {'k': 2.0}\ndef by(held):\n    def d(f):\n        @functools.wraps(f)\n"
        "        def w(*a, **k): return f(*a, **k) * held['k']\n        return w\n    return d\n@by(rates)\ndef f(x): return x",
        *("f(x)", "rates['k'] = 3.0"),
    ),
    "a class for a decorator": (
        "import functools\nclass D:\n    def __init__(self, f): functools.update_wrapper(self, f); self.f, self.k = f, 2.0\n"
        "    def __call__(self, x): return self.f(x) * self.k\n@D\ndef f(x): return x",
        *("f(x)", "f.k = 3.0"),
    ),
    "what makes values that are missing": (
        "import collections as c\nk = 2.0\nd = c.defaultdict(lambda: k)",
        *("x * d.copy()['q']", "k = 3.0"),
    ),
    "a coroutine": (
        "k = [2.0]\nasync def g(x): return x * k[0]\ndef run(c):\n    try: c.send(None)\n"
        "    except StopIteration as e: return e.value",
        *("run(g(x))", "k[0] = 3.0"),
    ),
    "one more case of a single dispatch of methods": (
        "import functools\nclass A:\n    @functools.singledispatchmethod\n    def f(self, k): return 2.0\na = A()",
        *("x * a.f(1)", "A.f.register(int)(lambda self, k: 3.0)"),
    ),
    "a module that is loaded anew": (
        "import types; m = types.ModuleType('m'); exec('def h(x): return x * 2.0', vars(m))",
        *("m.h(x)", "exec('def h(x): return x * 3.0', vars(m))"),
    ),
    "a bound method of a list": ("k = [2.0]; get = k.__getitem__", "x * get(0)", "k[0] = 3.0"),
    "a bound method of a dict": ("k = {}; get = k.get", "x * get('a', 2.0)", "k['a'] = 3.0"),
    "one more case of a single dispatch": (
        "import functools\n@functools.singledispatch\ndef f(k): return 2.0",
        *("x * f(1)", "f.register(int)(lambda k: 3.0)"),
    ),
    "a context manager": (
        "import contextlib\nk = [2.0]\n@contextlib.contextmanager\n"
        "def c(): yield k[0]\ndef f(x):\n    with c() as one: return x * one",
        *("f(x)", "k[0] = 3.0"),
    ),
    "what a function of functions returns": ("k = [2.0]\ndef f(): return lambda x: x * k[0]", "f()(x)", "k[0] = 3.0"),
    "another tf.function": ("k = [2.0]; f = tf.function(lambda x: x * k[0])", "f(x)", "k[0] = 3.0"),
    "executed code": ("exec('def f(x): return x * k', globals()); k = 2.0", "f(x)", "k = 3.0"),
    "a global of a custom gradient": (
        "k = 2.0\n@tf.custom_gradient\ndef f(x): return x * k, lambda g: g * k",
        *("f(x)", "k = 3.0"),
    ),
}
OBJECTS = {
    "an attribute": (OWN, "x * own.k", "own.k = 3.0"),
    "an attribute in the place of the class's": (BOX, "x * box.k", "box.k = 3.0"),
    "an attribute that goes": (BOX + "\nbox.k = 3.0", "x * box.k", "del box.k"),
    "an attribute of the class": (BOX, "x * box.k", "Box.k = 3.0"),
    "an attribute of the class, by the class": (BOX, "x * Box.k", "Box.k = 3.0"),
    "an attribute of the class, read in a method": (BOX, "box.times(x)", "Box.k = 3.0"),
    "an attribute of the class, read in a call": (BOX, "box(x)", "Box.k = 3.0"),
    "an attribute of a base": ("class A: k = 2.0\nclass B(A): pass\nb = B()", "x * b.k", "A.k = 3.0"),
    "an attribute before that of a base": ("class A: k = 2.0\nclass B(A): pass\nb = B()", "x * b.k", "B.k = 3.0"),
    "a method of the class": (BOX, "box.times(x)", "Box.times = lambda self, x: x * 3.0"),
    "a method of the object": (BOX, "box.times(x)", "box.times = lambda x: x * 3.0"),
    "a method of a base by super": (
        "class A:\n    def f(self): return 2.0\nclass B(A):\n    def f(self): return super().f()\nb = B()",
        *("x * b.f()", "A.f = lambda self: 3.0"),
    ),
    "a special method": (BOX, "box(x)", "Box.__call__ = lambda self, x: x * 3.0"),
    "an operator": (
        "class A:\n    def __matmul__(self, x): return x * 2.0\na = A()",
        "a @ x",
        "A.__matmul__ = lambda self, x: x * 3.0",
    ),
    "a special method that comes later": (
        "class A: pass\na = A()",
        "x * (2.0 if a else 3.0)",
        "A.__bool__ = lambda self: False",
    ),
    "__getitem__": (
        "class A:\n    d = {'k': 2.0}\n    def __getitem__(self, k): return self.d[k]\na = A()",
        "x * a['k']",
        "a.d['k'] = 3.0",
    ),
    "__getattr__": (
        "class A:\n    def __init__(self): self.__dict__['inner'] = {'k': 2.0}\n"
        "    def __getattr__(self, k): return self.inner[k]\na = A()",
        *("x * a.k", "a.inner['k'] = 3.0"),
    ),
    "what a property reads": (
        "class A:\n    _k = 2.0\n    @property\n    def k(self): return self._k\na = A()",
        "x * a.k",
        "a._k = 3.0",
    ),
    "a property, another one": (
        "class A:\n    @property\n    def k(self): return 2.0\na = A()",
        "x * a.k",
        "A.k = property(lambda self: 3.0)",
    ),
    "a cached property": (
        "import functools\nk = [2.0]\nclass A:\n    @functools.cached_property\n    def f(self): return k[0]\na = A(); a.f",
        *("x * a.f", "k[0] = 3.0; del a.f"),
    ),
    "a class method": (
        "class A:\n    ks = [2.0]\n    @classmethod\n    def f(cls): return cls.ks[0]",
        "x * A.f()",
        "A.ks[0] = 3.0",
    ),
    "a static method": ("k = 2.0\nclass A:\n    @staticmethod\n    def f(): return k", "x * A.f()", "k = 3.0"),
    "a descriptor": (
        "class D:\n    k = 2.0\n    def __get__(self, one, owner): return self.k\nclass A: d = D()\na = A()",
        *("x * a.d", "vars(A)['d'].k = 3.0"),
    ),
    "a slot": ("class A:\n    __slots__ = ('k',)\na = A(); a.k = 2.0", "x * a.k", "a.k = 3.0"),
    "an empty slot": ("class A:\n    __slots__ = ('k',)\na = A()", "x * getattr(a, 'k', 2.0)", "a.k = 3.0"),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass A:\n    k: object = 2.0\na = A()",
        "x * a.k",
        "a.k = 3.0",
    ),
    "a namedtuple": ("import collections as c; A = c.namedtuple('A', 'k'); a = A([2.0])", "x * a.k[0]", "a.k[0] = 3.0"),
    "a SimpleNamespace": ("import types; a = types.SimpleNamespace(k=2.0)", "x * a.k", "a.k = 3.0"),
    "an object in an object": (OWN + "\nown.k = Own()", "x * own.k.k", "own.k.k = 3.0"),
    "an object in a list in a dict": (OWN + "\nt = {'a': [own]}", "x * t['a'][0].k", "own.k = 3.0"),
    "a subclass of dict": ("class A(dict): k = 2.0\na = A()", "x * a.k", "a.k = 3.0"),
    "a subclass of list": ("class A(list): pass\na = A([2.0])", "x * a[0]", "a[0] = 3.0"),
    "an object held weakly": (OWN + "\nimport weakref; ref = weakref.ref(own)", "x * ref().k", "own.k = 3.0"),
    "an object held weakly that goes": (
        OWN + "\nimport weakref; ref = weakref.ref(own)",
        "x * (3.0 if ref() is None else 2.0)",
        "del own",
    ),
    "a pattern": (OWN + "\ndef f(x):\n    match own:\n        case Own(k=2.0): return x\n    return -x", "f(x)", "own.k = 3.0"),
    "a pattern by position": (
        OWN + "\nOwn.__match_args__ = ('k',)\ndef f(x):\n    match own:\n        case Own(2.0): return x\n    return -x",
        *("f(x)", "own.k = 3.0"),
    ),
    "an object made within": (BOX, "Box().times(x)", "Box.k = 3.0"),
    "a default of a constructor": (
        "class A:\n    def __init__(self, k=2.0): self.k = k",
        "x * A().k",
        "A.__init__.__defaults__ = (3.0,)",
    ),
    "a callable object within a partial": (BOX + "\nimport functools; f = functools.partial(box)", "f(x)", "box.k = 3.0"),
    "a bound method": (OWN + "\nOwn.f = lambda self, x: x * self.k\nf = own.f", "f(x)", "own.k = 3.0"),
    "an attribute of a subclass of float": ("class A(float): k = 2.0\na = A(1.0)", "x * a.k", "a.k = 3.0"),
    "the arguments of a script": ("import argparse; a = argparse.Namespace(k=2.0)", "x * a.k", "a.k = 3.0"),
    "an object of a library that holds the user's": (
        "import fractions, threading; t = threading.Thread(); t.box = [2.0]",
        *("x * t.box[0]", "t.box[0] = 3.0"),
    ),
    "a subclass of partial": (
        OWN + "\nimport functools\nclass P(functools.partial): pass\nf = P(lambda o, x: x * o.k, own)",
        *("f(x)", "own.k = 3.0"),
    ),
    "a tf.function as a method": (
        "class A:\n    k = 2.0\n    @tf.function\n    def f(self, x): return x * self.k\na = A(); f = a.f",
        *("f(x)", "a.k = 3.0"),
    ),
    "a module that makes up its attributes": (
        "import types; m = types.ModuleType('m'); m.d = {'k': 2.0}; m.__getattr__ = lambda name: m.d[name]",
        *("x * m.k", "m.d['k'] = 3.0"),
    ),
    "an objective": (
        "k = [2.0]; o = tf.keras.optimizers.Objective(lambda: tf.constant([k[0]]), tf.reduce_sum)",
        *("x * o()", "k[0] = 3.0"),
    ),
    "a flag of a thread": ("import threading; e = threading.Event()", "x * (3.0 if e.is_set() else 2.0)", "e.set()"),
    "the name of a thread": (
        "import threading; t = threading.Thread(name='a')",
        "x * (2.0 if t.name == 'a' else 3.0)",
        "t.name = 'b'",
    ),
    "a sparse matrix": (
        "import scipy.sparse as s; m = s.csr_matrix(np.eye(2, dtype='f'))",
        *("x * float(m.sum())", "m.data[0] = 3.0"),
    ),
    "a set of weak references": (
        OWN + "\nimport weakref; s = weakref.WeakSet([own]); more = Own()",
        "x * float(len(s))",
        "s.add(more)",
    ),
    "an attribute of a subclass of array": (
        "class A(np.ndarray): pass\na = np.ones(2, 'f').view(A); a.k = 2.0",
        *("x * a.k", "a.k = 3.0"),
    ),
    "a proxy": (BOX + "\nimport weakref; p = weakref.proxy(box)", "p.times(x)", "Box.k = 3.0"),
    "a callable proxy": (BOX + "\nimport weakref; p = weakref.proxy(box)", "p(x)", "box.k = 3.0"),
    "a private attribute": (
        "class A:\n    __k = 2.0\n    def f(self): return self.__k\na = A()",
        *("x * a.f()", "a._A__k = 3.0"),
    ),
    "equality": (
        "class A:\n    k = 2.0\n    def __eq__(self, o): return self.k == o\na = A()",
        "x * (2.0 if a == 2.0 else 3.0)",
        "a.k = 1",
    ),
    "iteration": (
        "class A:\n    k = [2.0]\n    def __iter__(self): return iter(self.k)\na = A()",
        "x * sum(a)",
        "A.k[0] = 3.0",
    ),
    "text of an object": (
        "class A:\n    k = 2.0\n    def __repr__(self): return str(self.k)\na = A()",
        *("x * float(f'{a}')", "a.k = 3.0"),
    ),
    "an exception's attribute": ("class E(Exception): k = 2.0\ne = E()", "x * e.k", "e.k = 3.0"),
    "what an exception holds": ("e = ValueError([2.0])", "x * e.args[0][0]", "e.args[0][0] = 3.0"),
    "a list behind a member of an enum": (
        "import enum\nclass M(enum.Enum):\n    A = [2.0]",
        *("x * M.A.value[0]", "M.A.value[0] = 3.0"),
    ),
    "a global of a method of an enum": (
        "import enum\ng = 2.0\nclass M(enum.Enum):\n    A = 1\n    def rate(self): return g",
        *("x * M.A.rate()", "g = 3.0"),
    ),
    "an attribute of a metaclass": ("class M(type): k = 2.0\nclass A(metaclass=M): pass", "x * A.k", "M.k = 3.0"),
    "what a metaclass keeps": (
        "class M(type):\n    kept = {}\n    def __call__(cls):\n"
        "        if cls not in M.kept: M.kept[cls] = super().__call__()\n        return M.kept[cls]\n"
        "class A(metaclass=M): k = 2.0\nA()",
        *("x * A().k", "A().k = 3.0"),
    ),
    "another class for an object": (
        "class A:\n    def f(self): return 2.0\nclass B:\n    def f(self): return 3.0\na = A()",
        *("x * a.f()", "a.__class__ = B"),
    ),
    "other attributes for an object": (OWN, "x * own.k", "own.__dict__ = {'k': 3.0}"),
    "a module of a class of its own": (
        "import types\nclass M(types.ModuleType):\n    @property\n    def k(self): return self._k\nm = M('m'); m._k = 2.0",
        *("x * m.k", "m._k = 3.0"),
    ),
    "a dataclass with slots": (
        "import dataclasses as d\n@d.dataclass(slots=True)\nclass A:\n    k: object = 2.0\na = A()",
        *("x * a.k", "a.k = 3.0"),
    ),
    "a private slot of a base": (
        "class A:\n    __slots__ = ('__k',)\n    def __init__(self): self.__k = 2.0\n"
        "    def f(self): return self.__k\nclass B(A): pass\na = B()",
        *("x * a.f()", "a._A__k = 3.0"),
    ),
    "a descriptor that writes": (
        "class D:\n    def __set_name__(self, o, n): self.n = '_' + n\n"
        "    def __get__(self, o, t): return getattr(o, self.n, 2.0)\n"
        "    def __set__(self, o, v): setattr(o, self.n, v)\nclass A: k = D()\na = A()",
        *("x * a.k", "a.k = 3.0"),
    ),
    "what an object stands for": (
        "class A:\n    def __init__(self, o): self._o = o\n    def __getattr__(self, n): return getattr(self._o, n)\n"
        "class B: k = 2.0\na = A(B())",
        *("x * a.k", "a._o.k = 3.0"),
    ),
    "a method of an abstract class": (
        "import abc\nclass B(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\n    def g(self): return self.f()\n"
        "class A(B):\n    def f(self): return 2.0\na = A()",
        *("x * a.g()", "A.f = lambda self: 3.0"),
    ),
    "callable objects in a list": (BOX + "\nfs = [box, Box()]", "fs[1](fs[0](x))", "fs[1].k = 3.0"),
    "a hook, one more": (OWN + "\nown.hooks = []", "sum([h(x) for h in own.hooks], x)", "own.hooks.append(lambda x: x)"),
    "a register of subclasses": (
        "class A:\n    known = []\n    def __init_subclass__(cls): A.known.append(cls)\nclass B(A): k = 2.0",
        *("x * sum(c.k for c in A.known)", "exec('class C(A): k = 1.0')"),
    ),
    "what a copy is made of": (OWN + "\nimport copy", "x * copy.copy(own).k", "own.k = 3.0"),
    "a value that is missing": (
        "class D(dict):\n    k = 2.0\n    def __missing__(self, key): return self.k\nd = D()",
        *("x * d['zz']", "D.k = 3.0"),
    ),
    "an index": ("class A:\n    k = 0\n    def __index__(self): return self.k\na = A()", "x * [2.0, 3.0][a]", "a.k = 1"),
}
MADE_UP_NAMES = {
    "getattr of a name": (OWN, "x * getattr(own, 'k')", "own.k = 3.0"),
    "getattr with two locals": (OWN + "\ndef f(x, one, name): return x * getattr(one, name)", "f(x, own, 'k')", "own.k = 3.0"),
    "getattr of a name put together": (OWN, "x * getattr(own, 'k' + str(0))", "own.k0 = 3.0"),
    "getattr of a name in a list": (OWN + "\nnames = ['k0']", "x * getattr(own, names[0])", "own.k0 = 3.0"),
    "getattr with a default": (OWN, "x * getattr(own, 'z' + str('z'), 2.0)", "own.zz = 3.0"),
    "hasattr": (OWN, "x * (3.0 if hasattr(own, 'z' + str('z')) else 2.0)", "own.zz = 1"),
    "getattr by another name": (OWN + "\nget = getattr", "x * get(own, 'k' + str(0))", "own.k0 = 3.0"),
    "attrgetter by another name": (
        OWN + "\nfrom operator import attrgetter as get",
        *("x * get('k' + str(0))(own)", "own.k0 = 3.0"),
    ),
    "__getattribute__": (OWN, "x * own.__getattribute__('k' + str(0))", "own.k0 = 3.0"),
    "astuple": (
        "import dataclasses as d\n@d.dataclass\nclass A:\n    k: object = 2.0\na = A()",
        *("x * sum(d.astuple(a))", "a.k = 3.0"),
    ),
    "a made-up name of a module": (
        "import types; m = types.ModuleType('m'); m.k0 = 2.0",
        *("x * getattr(m, 'k' + str(0))", "m.k0 = 3.0"),
    ),
    "a made-up name of a global": ("RATE = 2.0", "x * globals()['RA' + str('TE')]", "RATE = 3.0"),
    "evaluated text": ("k = 2.0", "x * eval('k')", "k = 3.0"),
    "evaluated text from elsewhere": ("k = 2.0; text = 'k' + ''", "x * eval(text)", "k = 3.0"),
    "an attribute in evaluated text": (OWN, "x * eval('own.k0') * (own is not None)", "own.k0 = 3.0"),
    "vars": (OWN, "x * vars(own)['k' + str('0')]", "own.k0 = 3.0"),
    "__dict__": (OWN, "x * own.__dict__['k' + str('0')]", "own.k0 = 3.0"),
    "all attributes": (OWN, "x * sum(vars(own).values())", "own.more = 3.0"),
    "an attrgetter": (OWN + "\nimport operator", "x * operator.attrgetter('k' + str('0'))(own)", "own.k0 = 3.0"),
    "an attrgetter made elsewhere": (
        OWN + "\nimport operator; get = operator.attrgetter('k0')",
        "x * get(own)",
        "own.k0 = 3.0",
    ),
    "a methodcaller made elsewhere": (
        BOX + "\nimport operator; call = operator.methodcaller('times', 1.0)",
        "x * call(box)",
        "box.k = 3.0",
    ),
    "a made-up name of a class": (BOX, "x * getattr(Box, 'k' + str(''))", "Box.k = 3.0"),
    "a made-up name of a layer": (layer("getattr(self, 'k' + str('0'))"), "layer(x)", "layer.k0 = 3.0"),
    "a made-up name of a layer that comes later": (layer("getattr(self, 'z' + str('z'), 2.0)"), "layer(x)", "layer.zz = 3.0"),
}
TRACKED = {
    "an attribute of a layer": (layer("self.k"), "layer(x)", "layer.k = 3.0"),
    "an attribute of a layer, from outside": (layer("1.0"), "layer(x) * layer.k", "layer.k = 3.0"),
    "an attribute of a layer's class": (layer("self.rate"), "layer(x)", "Scale.rate = 3.0"),
    "an attribute in the place of the layer's class's": (layer("self.rate"), "layer(x)", "layer.rate = 3.0"),
    "an attribute of a layer that goes": (layer("self.rate") + "\nlayer.rate = 3.0", "layer(x)", "del layer.rate"),
    "a list in a layer": (layer("self.held[0]"), "layer(x)", "layer.held[0] = 3.0"),
    "one more element in a layer": (layer("sum(self.held)"), "layer(x)", "layer.held.append(1.0)"),
    "a dict in a layer": (layer("self.table['k']"), "layer(x)", "layer.table['k'] = 3.0"),
    "an object in a layer": (OWN + layer("self.own.k") + "\nlayer.own = own", "layer(x)", "own.k = 3.0"),
    "an array in a layer": (layer("self.a") + "\nlayer.a = np.full(2, 2.0, 'f')", "layer(x)", "layer.a[0] = 3.0"),
    "the method of a layer's class": (layer("2.0"), "layer(x)", "Scale.call = lambda self, x: x * 3.0"),
    "another class for a layer": (
        layer("2.0") + "\nclass Other(Scale):\n    def call(self, x): return x * 3.0",
        *("layer(x)", "layer.__class__ = Other"),
    ),
    "a property of a layer": (layer("self.p") + "\nScale.p = property(lambda self: self.k)", "layer(x)", "layer.k = 3.0"),
    "a global of a layer's method": ("g = 2.0" + layer("g"), "layer(x)", "g = 3.0"),
    "a layer within a layer": (layer("self.inner.k") + "\nlayer.inner = Scale()", "layer(x)", "layer.inner.k = 3.0"),
    "a layer within a layer, another one": (
        layer("self.inner[0].k") + "\nlayer.inner = [Scale()]; other = Scale(); other.k = 3.0",
        *("layer(x)", "layer.inner[0] = other"),
    ),
    "a layer of a model": (layer("self.k") + "\nmodel = tf.keras.Sequential([layer])", "model(x)", "layer.k = 3.0"),
    "a layer of a model, one more": (
        layer("self.k") + "\nmodel = tf.keras.Sequential([layer])",
        "model(x)",
        "model.add(Scale())",
    ),
    "an activation": ("d = tf.keras.layers.Activation('relu')", "d(x)", "d.activation = tf.keras.activations.sigmoid"),
    "an option of a layer": ("d = tf.keras.layers.LeakyReLU(0.5)", "d(-x)", "d.negative_slope = 0.25"),
    "an attribute of a module": ("class M(tf.Module):\n    k = 2.0\nm = M(); m.k = 2.0", "x * m.k", "m.k = 3.0"),
    "a list in a module": ("class M(tf.Module): pass\nm = M(); m.k = [2.0]", "x * m.k[0]", "m.k[0] = 3.0"),
    "an option of a layer with braces in its name": (
        "d = tf.keras.layers.LeakyReLU(0.5, name='a{b}{}')",
        *("d(-x)", "d.negative_slope = 0.25"),
    ),
    "an option of a loss": ("loss = tf.keras.losses.Huber(0.5)", "loss(5.0 * x, 0.0 * x)", "loss.delta = 5.0"),
    "an option of a custom loss": (
        "class Own(tf.keras.losses.Loss):\n    k = 2.0\n    def call(self, y, p): return (y - p) * self.k\nloss = Own()",
        *("loss(x, 0.0 * x)", "loss.k = 3.0"),
    ),
    "an option of a custom metric": (
        "class Own(tf.keras.metrics.Mean):\n    k = 2.0\n"
        "    def update_state(self, v): super().update_state(v * self.k)\nm = Own()",
        *("(m.reset_state(), m(x))[1]", "m.k = 3.0"),
    ),
    "a factor of a regularizer": ("r = tf.keras.regularizers.L2(2.0)\nl = [r]", "x * l[0](x)", "r.l2 = 3.0"),
    "a limit of a constraint": ("c = tf.keras.constraints.MaxNorm(1.0)", "c(tf.expand_dims(x, 1))", "c.max_value = 2.0"),
    "an option of a schedule": (
        "s = tf.keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)",
        "x * s(1)",
        "s.decay_rate = 0.25",
    ),
}
NOTICED = GLOBALS | FUNCTIONS | OBJECTS | MADE_UP_NAMES | TRACKED

WRITES = {
    "a counter in an attribute": (OWN, "x * (setattr(own, 'k', own.k + 1.0) or own.k)"),
    "a counter that is used later": (OWN + "\ndef f(x):\n    own.k += 1.0\n    return x * (2.0 if own.k < 7 else 3.0)", "f(x)"),
    "a global counter": ("k = 0.0\ndef f(x):\n    global k\n    k += 1.0\n    return x * k", "f(x)"),
    "a counter around": (
        "def make():\n    k = 0.0\n    def f(x):\n        nonlocal k\n"
        "        k += 1.0\n        return x * k\n    return f\nf = make()",
        "f(x)",
    ),
    "a counter of a class": (BOX + "\ndef f(x):\n    Box.k += 1.0\n    return x * Box.k", "f(x)"),
    "a counter of a function": ("def f(x):\n    f.k += 1\n    return x\nf.k = 0", "f(x)"),
    "a list that grows": ("k = []", "k.append(1) or x * float(len(k))"),
    "a list that only grows": ("k = []", "k.append(1) or x"),
    "a list of tensors": ("k = []", "k.append(x) or x"),
    "a list that shrinks": ("k = [1.0] * 100", "x * k.pop() * float(len(k))"),
    "a dict": ("k = {}", "k.__setitem__(len(k), 1) or x"),
    "a set": ("k = set()", "k.add(len(k)) or x"),
    "a deque": ("import collections as c; k = c.deque(range(100))", "x * float(k.popleft())"),
    "a deque that turns": ("import collections as c; k = c.deque([2.0, 3.0])", "k.rotate() or x * k[0]"),
    "a Counter": ("import collections as c; k = c.Counter()", "k.update('a') or x"),
    "an array": ("k = np.zeros(1)", "k.__iadd__(1.0) is None or x"),
    "bytes": ("k = bytearray()", "k.append(1) or x"),
    "a flag that flips": ("k = [True]\ndef f(x):\n    k[0] = not k[0]\n    return x if k[0] else -x", "f(x)"),
    "an attribute of a layer": (layer("(setattr(self, 'k', self.k + 1.0) or self.k)"), "layer(x)"),
    "a counter past __setattr__": (layer("(vars(self).update(k=self.k + 1.0) or float(self.k > 6))"), "layer(x)"),
    "a counter of a metaclass": (
        "class M(type):\n    def __call__(cls):\n        cls.n += 1\n        return float(cls.n > 5)\n"
        "class A(metaclass=M): n = 0",
        "x * A()",
    ),
    "a counter in a property": (
        "class A:\n    n = 0\n    @property\n    def k(self):\n        self.n += 1\n        return float(self.n > 5)\na = A()",
        "x * a.k",
    ),
    "a counter of objects that are made": (
        "class A:\n    n = 0\n    def __new__(cls):\n        cls.n += 1\n        return super().__new__(cls)",
        "x * float(A().n > 5)",
    ),
    "a counter in a decorator": (
        "import functools\ndef d(f):\n    n = 0\n    @functools.wraps(f)\n    def w(x):\n        nonlocal n\n"
        "        n += 1\n        return f(x) * float(n > 5)\n    return w\n@d\ndef f(x): return x",
        "f(x)",
    ),
    "a counter in globals()": ("n = 0\ndef f(x):\n    globals()['n'] += 1\n    return x * float(n > 5)", "f(x)"),
    "a counter in a context variable": (
        "import contextvars\nn = contextvars.ContextVar('n', default=0)\ndef f(x):\n    n.set(n.get() + 1)\n"
        "    return x * float(n.get() > 5)",
        "f(x)",
    ),
    "a list in a default": ("def f(x, k=[]): return k.append(1) or x * float(len(k) > 5)", "f(x)"),
    "errors that are kept": (
        "k = []\ndef f(x):\n    try: raise ValueError\n    except ValueError as e: k.append(e)\n"
        "    return x * float(len(k) > 5)",
        "f(x)",
    ),
    "a list in a layer": (layer("(self.held.append(1.0) or sum(self.held))"), "layer(x)"),
    "an attribute of a module": (
        "class M(tf.Module): k = 2.0\nm = M()\ndef f(x):\n    m.k = m.k + 1.0\n    return x * m.k",
        "f(x)",
    ),
}
DRAWS = {
    "np.random.rand": ("", "x * float(np.random.rand())"),
    "np.random.normal": ("", "x + np.random.normal(size=2).astype('f')"),
    "np.random.shuffle": ("", "x * float(np.random.permutation(3)[0])"),
    "np.random.seed and a draw": ("", "x * float(np.random.randint(100))"),
    "random.random": ("import random", "x * random.random()"),
    "random.choice of equal things": ("import random", "x * random.choice([2.0, 2.0])"),
    "random, imported by name": ("from random import random as draw", "x * draw()"),
    "random, imported within": ("def f(x):\n    import random\n    return x * random.random()", "f(x)"),
    "a branch by chance": ("import random", "x if random.random() < 2.0 else -x"),
    "a generator of NumPy's": ("g = np.random.default_rng(0)", "x * g.random()"),
    "a RandomState": ("g = np.random.RandomState(0)", "x * g.rand()"),
    "a generator of Python's": ("import random; g = random.Random(0)", "x * g.random()"),
    "the system's generator": ("import random; g = random.SystemRandom()", "x * g.random()"),
    "a generator in a layer": (layer("self.g.random()") + "\nlayer.g = np.random.default_rng(0)", "layer(x)"),
    "a generator in a dict": ("d = {'g': np.random.default_rng(0)}", "x * (2.0 + 0.0 * d['g'].random())"),
    "a bound method of a generator": ("draw = np.random.default_rng(0).random", "x * draw()"),
    "a draw in a default of Python's": ("import random", "x * sorted([2.0, 3.0], key=lambda k: random.random())[0]"),
    "os.urandom": ("import os", "x * float(int.from_bytes(os.urandom(8), 'big'))"),
    "uuid4": ("import uuid", "x * float(uuid.uuid4().int % 10**6)"),
    "secrets": ("import secrets", "x * float(secrets.randbelow(10**6))"),
    "time.time": ("import time", "x * (time.time() % 1.0)"),
    "time.time_ns": ("import time", "x * float(time.time_ns() % 10**9)"),
    "perf_counter": ("import time", "x * time.perf_counter()"),
    "monotonic": ("from time import monotonic", "x * (monotonic() % 1.0)"),
    "process_time": ("import time", "x * float(time.process_time_ns())"),
    "datetime.now": ("import datetime", "x * datetime.datetime.now().timestamp()"),
    "a clock in the loss of a second-order method": (
        "import time; v = tf.Variable([1.0, 2.0]); o = tf.keras.optimizers.Newton()",
        "o.minimize(lambda: tf.reduce_sum((v - x) ** 2 * (1.0 + time.time() % 1.0)), [v]) * 1.0",
    ),
    "a clock in a loss with a tape": (
        GRADIENT + "\nimport time",
        "gradient(x * (time.time() % 1.0))",
    ),
    "a clock in a loop": (
        "import time",
        "tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * (time.time() % 1.0)), [0, x])[1]",
    ),
    "a clock in vectorized_map": ("import time", "tf.vectorized_map(lambda a: a * (time.time() % 1.0), x)"),
    "a clock in a custom gradient": (
        "import time\n@tf.custom_gradient\ndef g(x): return x * (time.time() % 1.0), lambda d: d\n",
        "g(x)",
    ),
    "a clock in the gradient of a custom gradient": (
        "import time\n@tf.custom_gradient\ndef g(x): return x * 2.0, lambda d: d * (time.time() % 1.0)\n"
        "def f(x):\n    with tf.GradientTape() as t:\n        t.watch(x)\n        y = g(x)\n    return t.gradient(y, x)",
        "f(x)",
    ),
    "a clock in the initial value of a slot of an argument": (
        "import time",
        "tf.cond(x[0] > 0.0, lambda: x * (time.time() % 1.0), lambda: x)",
    ),
    "a clock that is a parameter": ("import time", "tf.clip_by_value(x, 0.0, time.time() % 1.0)"),
    "a clock that is the seed of a draw": ("import time", "tf.random.stateless_uniform([2], [1, time.time_ns() % 10**6]) + x"),
    "a clock that is a shape": ("import time", "tf.reduce_sum(x) * tf.ones([time.perf_counter_ns() % 1000 + 1])"),
    "a clock that is an axis or none": (
        "import time; n = time.perf_counter_ns\ndef f(x): return tf.reshape(x, [1] * (n() % 30 + 1) + [2])",
        "f(x)",
    ),
    "a clock in a key of a result": ("import time", "{str(time.time_ns()): x}"),
    "a clock in a result": ("import time", "(x, float(time.time_ns()))"),
    "a constant of the clock": ("import time", "tf.constant([time.time() % 1.0] * 2) * x"),
    "a clock called from C": ("import time", "x * sum(map(lambda f: f(), [time.perf_counter]))"),
    "a clock in an array": ("import time", "tf.cast(x, 'float64') * np.array(time.perf_counter())"),
    "id of a new object that is kept": ("k = []", "x * float(id(k.append(object()) or k[-1]) % 1000)"),
    "itertools.count": ("import itertools; k = itertools.count()", "x * float(next(k))"),
    "an iterator": ("k = iter([2.0] * 100)", "x * next(k)"),
    "itertools.cycle": ("import itertools; k = itertools.cycle([2.0, 2.0, 3.0])", "x * next(k)"),
    "a running generator": ("def g():\n    while True: yield 2.0\nk = g()", "x * next(k)"),
    "the bound method of an iterator": ("k = iter([2.0] * 100).__next__", "x * k()"),
    "an iterator in a partial": ("import functools; k = functools.partial(next, iter([2.0] * 100))", "x * k()"),
    "a custom iterator": (
        "class I:\n    n = 0.0\n    def __iter__(self): return self\n"
        "    def __next__(self):\n        self.n += 1.0\n        return self.n\nk = I()",
        "x * next(k)",
    ),
    "a queue": ("import queue; k = queue.Queue()\nfor i in range(50): k.put(2.0)", "x * k.get()"),
    "the rows of a file": ("k = open(FILE)", "x * float(len(k.readline()))"),
    "equal rows of text": ("import io; k = io.StringIO('2\\n' * 20)", "x * float(k.readline() or 3)"),
    "equal bytes of a file": ("k = open(FILE, 'rb')", "x * float(len(k.read(1)))"),
    "a clock by its parts": ("import time", "x * float(time.localtime().tm_year)"),
    "a clock as text": ("from time import strftime", "x * float(strftime('%Y'))"),
    "a clock of the system": ("import time", "x * float(time.clock_gettime(1) > 0.0)"),
    "the year": ("import datetime", "x * float(datetime.datetime.now().year)"),
    "the year, by a class": ("from datetime import datetime as d", "x * float(d.now().year)"),
    "today": ("from datetime import date", "x * float(date.today().year)"),
    "another generator of the system": ("import random", "x * float(random.SystemRandom().random() < 2.0)"),
    "what the system draws": ("import os", "x * float(os.getrandom(1)[0] >= 0)"),
    "seeds that spawn": ("s = np.random.SeedSequence(0)", "x * np.random.default_rng(s.spawn(1)[0]).random()"),
    "bits of a generator": ("b = np.random.PCG64(0)", "x * float(b.random_raw() % 100)"),
    "a generator in a slot": (
        "import random\nclass A: __slots__ = ('g',)\na = A(); a.g = random.Random(0)",
        "x * float(a.g.random() < 2.0)",
    ),
    "a generator around": (
        "def make():\n    g = np.random.default_rng(0)\n    return lambda x: x * float(g.random() < 2.0)\nf = make()",
        "f(x)",
    ),
    "a count in a default": ("import itertools\ndef f(x, c=itertools.count()): return x * float(next(c) > 5)", "f(x)"),
    "a tensor's value": ("", "x if float(tf.reduce_sum(x)) > 0.0 else -x"),
    "an argument that is changed": ("def f(x, held):\n    held.append(1.0)\n    return x * sum(held)", "f(x, HELD)"),
    "a large array": ("k = np.ones((1200, 1000), 'f')", "x * tf.reduce_sum(k)"),
    "a long list": ("k = [2.0] * 5000", "x * k[0]"),
    "an object with many attributes": (
        OWN + "\nfor i in range(1200): setattr(own, f'a{i}', i)",
        "x * float(getattr(own, 'a' + str('7')))",
    ),
}
EAGER = {f"writes {name}": one for name, one in WRITES.items()} | DRAWS

CONSTANT = {
    "the content of a file": (
        "import pathlib; file = pathlib.Path(FILE); file.write_text('2')",
        "x * float(file.read_text())",
        "file.write_text('3')",
    ),
    "an array in a file": (
        "import pathlib; file = pathlib.Path(FILE); file.write_text('2')",
        "x * float(np.loadtxt(FILE))",
        "file.write_text('3')",
    ),
    "the size of a file": ("import os", "x * float(os.stat(FILE).st_size)", "os.truncate(FILE, 3)"),
    "os.getenv": (
        "import os; os.environ['OF_A_PROGRAM'] = '2'",
        "x * float(os.getenv('OF_A_PROGRAM'))",
        "os.environ['OF_A_PROGRAM'] = '3'",
    ),
    "a setting of NumPy's": ("", "x * (2.0 if np.geterr()['under'] == 'ignore' else 3.0)", "np.seterr(under='warn')"),
    "a setting of the interpreter": ("import sys", "x * sys.getswitchinterval()", "sys.setswitchinterval(0.006)"),
    "an attribute put on a library's module": (
        "import math; math.of_a_program = 2.0",
        "x * math.of_a_program",
        "math.of_a_program = 3.0",
    ),
    "a module imported under a made-up name": (
        "import sys, types, importlib; m = sys.modules['of_a_program'] = types.ModuleType('of_a_program'); m.k = 2.0",
        *("x * importlib.import_module('of_a_' + str('program')).k", "m.k = 3.0"),
    ),
    "what is set past __setattr__": (layer("self.k"), "layer(x)", "vars(layer)['k'] = 3.0"),
    "a class that is registered": (
        OWN + "\nimport abc\nclass B(abc.ABC): pass",
        *("x * (3.0 if isinstance(own, B) else 2.0)", "B.register(Own)"),
    ),
    "other bases of a class": (BOX + "\nclass A(Box): pass\nclass B: k = 3.0", "x * A.k", "A.__bases__ = (B,)"),
    "the name of a class": (BOX, "x * float(len(Box.__name__))", "Box.__name__ = 'Other'"),
    "a builtin that is replaced": (
        "import builtins; builtins.of_a_program = 2.0",
        "x * of_a_program",
        "builtins.of_a_program = 3.0",
    ),
    "a lock": ("import threading; k = threading.Lock()", "x * (3.0 if k.locked() else 2.0)", "k.acquire()"),
    "text in memory": ("import io; k = io.StringIO('2')", "x * float(k.getvalue())", "k.write('3')"),
    "rows of a database": (
        "import sqlite3; k = sqlite3.connect(':memory:'); k.execute('create table t (a)')",
        *("x * float(k.execute('select count(*) from t').fetchone()[0])", "k.execute('insert into t values (1)')"),
    ),
    "a setting of decimals": ("import decimal", "x * float(decimal.getcontext().prec)", "decimal.getcontext().prec += 1"),
}


@pytest.fixture
def x():
    return tf.constant([1.0, 2.0])


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a program of its text: the function, and how to carry out a further line of it."""
    epsilon, errors, interval = tf.keras.config.epsilon(), np.geterr(), sys.getswitchinterval()
    module = types.ModuleType("of_a_program_itself")
    (tmp_path / "file").write_text("\n".join("x" * (i + 1) for i in range(50)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(module).update(np=np, tf=tf, FILE=str(tmp_path / "file"), HELD=[])
    draws = np.random.get_state()

    def made(before, result):
        exec(textwrap.dedent(before), vars(module))
        exec(f"def of_x(x): return {result}", vars(module))
        return module.of_x, lambda line: exec(line, vars(module))

    yield made
    if hasattr(vars(module).get("k"), "close"):
        module.k.close()
    vars(module).clear()
    sys.modules.pop("of_a_program", None)
    vars(builtins).pop("of_a_program", None)
    decimal.setcontext(decimal.Context())
    tf.keras.config.set_epsilon(epsilon), np.seterr(**errors), sys.setswitchinterval(interval), np.random.set_state(draws)


def same(results, expected):
    return all(np.array_equal(one.numpy(), expected.numpy(), equal_nan=True) for one in results)


@pytest.mark.parametrize("name", NOTICED)
def test_a_change_is_noticed_at_the_next_call_and_without_one_calls_are_replays(program, name, x, caplog):
    before, result, change = NOTICED[name]
    function, carry_out = program(before, result)
    compiled = tf.function(function)
    found, replays = [compiled(x) for _ in range(5)], compiled.replays
    first = function(x)
    assert same(found, first) and replays >= 3 and compiled.eager_calls <= 1
    carry_out(change)
    found = [compiled(x) for _ in range(5)]
    assert same(found, function(x)) and compiled.replays >= replays + 3 and not caplog.records
    assert not same(found[:1], first), "the change is to change something"


@pytest.mark.parametrize("name", EAGER)
def test_what_is_impure_or_cannot_be_compared_stays_eager_and_says_so_once(program, name, x, caplog):
    before, result = EAGER[name]
    function, _ = program(before, result)
    compiled = tf.function(function)
    for _ in range(10):
        compiled(x)
    assert (compiled.recordings, compiled.replays, compiled.eager_calls) == (0, 0, 10)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "runs eagerly: " in told


@pytest.mark.parametrize("name", CONSTANT)
def test_what_the_guide_lists_is_a_constant_of_the_recording(program, name, x):
    before, result, change = CONSTANT[name]
    function, carry_out = program(before, result)
    compiled = tf.function(function)
    found = [compiled(x) for _ in range(5)]
    first = function(x)
    assert same(found, first) and compiled.replays == 4
    carry_out(change)
    assert same([compiled(x) for _ in range(5)], first) and not same([first], function(x))


def test_the_table_is_large_enough():
    assert len(NOTICED) + len(EAGER) + len(CONSTANT) >= 200 and len(EAGER) >= 40


SOURCES = {
    "random": lambda: random.random(),
    "np.random": lambda: float(np.random.rand()),
    "a clock": lambda: time.time() % 1.0,
    "a counter": lambda: float(len(COUNTED.append(1) or COUNTED)),
}
COUNTED = []


def model_with(place, source):
    """A model with a number from outside in one place."""

    class Layer(tf.keras.layers.Layer):
        def call(self, x):
            return x * source()

    class Loss(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean(tf.abs(y_true - y_pred), -1) * source()

    class Metric(tf.keras.metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(source())

    class Model(tf.keras.Sequential):
        def train_step(self, data):
            x, y = data
            return super().train_step((x * source() if place == "train_step" else x, y))

    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(2), *([Layer()] if place == "call" else [])]
    model = Model(layers)
    loss = {"a loss": Loss(), "a function for a loss": lambda y, p: tf.reduce_mean(tf.abs(y - p)) * source()}.get(place, "mse")
    model.compile("sgd", loss, metrics=[Metric()] if place == "a metric" else [])
    return model


@pytest.mark.parametrize("place", ["call", "a loss", "a function for a loss", "a metric", "train_step"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_step_of_fit_with_a_number_from_outside_stays_eager_and_says_where_and_what_to_use(place, source, caplog):
    COUNTED.clear()
    draws, model = np.random.get_state(), model_with(place, SOURCES[source])
    model.fit(np.ones((12, 2), "f"), np.ones((12, 2), "f"), batch_size=2, epochs=2, verbose=0)
    np.random.set_state(draws)
    step = model._trainer.steps["train_step"]
    assert (step.recordings, step.replays, step.eager_calls) == (0, 0, 12)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "tf.Variable" in told and (source == "a counter" or (__file__ in told and "tf.random" in told))


def test_a_schedule_is_asked_for_its_number_at_each_step():
    class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            COUNTED.append(1)
            return 0.1 * len(COUNTED)

        def get_config(self):
            return {}

    COUNTED.clear()
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)])
    model.compile(tf.keras.optimizers.SGD(Schedule()), "mse")
    model.fit(np.ones((12, 2), "f"), np.ones((12, 2), "f"), batch_size=2, epochs=1, verbose=0)
    step = model._trainer.steps["train_step"]
    assert step.replays >= 4 and len(COUNTED) >= 6
