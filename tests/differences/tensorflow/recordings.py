"""What a recorded function does about Python's state."""

from __future__ import annotations

from tests.differences import Row

TITLE = "Python's state in a `tf.function`"
ROWS = [
    Row(
        what="a function that changes Python's state",
        code="""seen = []
f = tf.function(lambda x: seen.append(1) or x)
_ = [f(tf.constant(0.0)) for _ in range(3)]
len(seen)""",
        ours="3",
        theirs="1",
        why="a run that writes what outlives it runs eagerly, which is logged once; no call loses it in silence",
    ),
    Row(
        what="a counter in an attribute",
        code="""class Every:
    n = 0

    @tf.function
    def second(self, x):
        self.n += 1
        return x if self.n % 2 == 0 else -x

every = Every()
sum(float(every.second(tf.constant(1.0))) for _ in range(4))""",
        ours="0",
        theirs="-4",
        why="likewise: the first run would decide for all",
    ),
    Row(
        what="a global or an attribute that is set after the first call",
        code="""rate = 1.0
f = tf.function(lambda x: x * rate)
_ = f(tf.constant(1.0))
rate = 2.0
float(f(tf.constant(1.0)))""",
        ours="2",
        theirs="1",
        why="a recording knows what it read, and is made anew if that has changed",
    ),
    Row(
        what="an element of a list or an array that a function reads",
        code="""values, table = [1.0], np.ones(1)
f = tf.function(lambda x: x * values[0] * float(table[0]))
_ = f(tf.constant(1.0))
values[0], table[:] = 2.0, 3.0
float(f(tf.constant(1.0)))""",
        ours="6",
        theirs="1",
        why="likewise",
    ),
    Row(
        what="numbers from `np.random`, `random`, `time` in a function",
        code="""generator = np.random.default_rng(0)
f = tf.function(lambda x: x * generator.random())
len({float(f(tf.constant(1.0))) for _ in range(3)})""",
        ours="3",
        theirs="1",
        why="such a function runs eagerly, which is logged once; one number for ever is no program's wish",
    ),
    Row(
        what="what a `tf.function` prints",
        code="""import io
out = io.StringIO()
f = tf.function(lambda x: print("runs", file=out) or x)
_ = [f(tf.constant(0.0)) for _ in range(4)]
out.getvalue().count("runs")""",
        ours="2",
        theirs="1",
        why="two runs are recorded and compared, so that an impure function is never taken for a program",
    ),
    Row(
        what="a Variable that a function returns",
        code="""v = tf.Variable(1.0)
isinstance(tf.function(lambda: v)(), tf.Variable)""",
        ours="True",
        theirs="False",
        why="the result is that of the function without `tf.function`",
    ),
    Row(
        what="calls with ever new shapes",
        code="""f = tf.function(lambda x: x + 1.0)
_ = [f(tf.zeros(n)) for n in range(20)]
f.experimental_get_tracing_count() <= 8""",
        ours="True",
        theirs="False",
        why="a recording costs ten eager runs: after eight, replays have to pay for more, and new shapes run eagerly",
    ),
]
