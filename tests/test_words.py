"""Words that do not come back: a reader who knows compilers, automatic differentiation and Keras need not learn others."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent

WORDS = {
    r"\b(?:who|which)soever\b|\bwhoever\b|\b(?:no|some|any)body\b": "say who: the caller, the executor, no other reference",
    r"\bones?[_ ']s? ?own\b": "custom: a custom layer, a custom training loop",
    r"\bkey idea:|^next: `": "headers of at most three lines; the order of a folder says what to read next",
    r"\bevery so-manieth\b|\bso-manieth\b": "every n-th step",
    r"\bthe door\b": "dispatch",
    r"\b(?:lies|lie|lay) on the stack\b": "is on the stack",
    r"\bthose who watch\b|\bannounce\(frame\b": "interpreters are notified",
    r"\bin_words\b|\bmachine_words\b|\bthe machine's\b": "instructions of the bytecode interpreter",
    r"\bone after the other\b": "in turn; of arrays: flattened, contiguous",
    r"\bread_joined\b|\bassign_joined\b": "read_flat, assign_flat",
    r"\bcommon_results\b": "eliminate_common_subexpressions",
    r"\bwithout_dead\b": "eliminate_dead_code",
    r"\bwithout_identities\b": "remove_identities",
    r"\b_?taken_over\b|\breuses\b": "may_alias, donated",
    r"\blabel_excess\b": "sparse_softmax_cross_entropy_grad",
    r"\bstepped\b": "run_step",
    r"\bplainly\b": "directly",
    r"\bearns\b": "is_worth_compiling",
    r"^class (?:Kept|Known|Side|Holder|Shares)\b": "SlotState, CacheEntry, LayerIO, WeightStore",
    r"\b(?:questions|notices|outliving|contents|complaints)\.py\b": "a file is named after what is in it",
    r"\bplan of the house\b": "structure of the package",
}
"""What must not be found, in small letters or capitals, and what to write instead."""

NOT_YET: dict[str, int] = {}
"""How many files still have a word; the numbers may only fall."""


def texts():
    """The text of each file that people read, by its path; this file has the words to forbid them."""
    found = [
        ROOT / "README.md",
        *(path for name in ("minikeras", "docs", "tests", "examples") for path in (ROOT / name).rglob("*")),
    ]
    return {
        f"{path.relative_to(ROOT)}\n": path.read_text(encoding="utf-8")
        for path in found
        if path.suffix in (".py", ".md") and path != pathlib.Path(__file__)
    }


def test_words_that_do_not_come_back():
    everything = texts()
    any_word = re.compile("|".join(f"(?:{word})" for word in WORDS), re.IGNORECASE | re.MULTILINE)
    suspects = {path: path + text for path, text in everything.items() if any_word.search(path + text)}
    found = {}
    for word, instead in WORDS.items():
        pattern = re.compile(word, re.IGNORECASE | re.MULTILINE)
        files = sorted(path.strip() for path, text in suspects.items() if pattern.search(text))
        if len(files) > NOT_YET.get(word, 0):
            found[word] = f"write {instead}, in {', '.join(files)}"
    assert not found, "\n".join(f"{word}: {where}" for word, where in found.items())
    assert len(everything) > 500 and set(NOT_YET) <= set(WORDS)
