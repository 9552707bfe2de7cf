"""Words that do not come back: a reader who knows compilers, automatic differentiation and Keras need not learn others."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent

WORDS = {
    ("whoever", "nobody", "somebody", "anybody"): "say who: the caller, the executor, no other reference",
    ("one's own", "ones own", "ones_own"): "custom: a custom layer, a custom training loop",
    ("key idea",): "headers of at most three lines",
    ("so-manieth",): "every n-th step",
    ("the door",): "dispatch",
    ("lies on the stack", "lie on the stack"): "is on the stack",
    ("those who watch", "announce(frame"): "interpreters are notified",
    ("in_words", "machine_words", "the machine's"): "instructions of the bytecode interpreter",
    ("one after the other",): "in turn; of arrays: flattened, contiguous",
    ("read_joined", "assign_joined"): "read_flat, assign_flat",
    ("common_results",): "eliminate_common_subexpressions",
    ("without_dead",): "eliminate_dead_code",
    ("without_identities",): "remove_identities",
    ("taken_over", "_taken_over", "reuses"): "may_alias, donated",
    ("label_excess",): "sparse_softmax_cross_entropy_grad",
    ("stepped",): "run_step",
    ("plainly",): "directly",
    ("earns",): "is_worth_compiling",
    ("class kept", "class known", "class side", "class holder", "class shares"): "SlotState, CacheEntry, LayerIO, WeightStore",
    ("questions.py", "notices.py", "outliving", "contents.py", "complaints.py"): "a file is named after what is in it",
    ("plan of the house",): "structure of the package",
}
"""What must not be found, in small letters or capitals, and what to write instead."""

NOT_YET: dict[str, int] = {}
"""How many files still have a word; the numbers may only fall."""


def texts():
    """The text of each file that people read, by its path; this file has the words to forbid them."""
    folders = [ROOT / name for name in ("minikeras", "docs", "tests", "examples")]
    found = [ROOT / "README.md", *(path for folder in folders for path in folder.rglob("*.*"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in found if path.suffix in (".py", ".md")}
    del named["tests/test_words.py"]
    return {name: f"{name}\n{path.read_text(encoding='utf-8')}".lower() for name, path in named.items()}


def test_words_that_do_not_come_back():
    files = texts()
    found = []
    for words, instead in WORDS.items():
        for word in words:
            whole = re.compile(rf"\b{re.escape(word)}(?!\w)")
            having = sorted(name for name, text in files.items() if word in text and whole.search(text))
            if len(having) > NOT_YET.get(word, 0):
                found.append(f"{word!r} in {', '.join(having)}: write {instead}")
    assert not found, "\n".join(found)
    assert len(files) > 500, "the files were not found"
