"""Formulas of docstrings, written as one types them, in LaTeX.

`(x - mean) / sqrt(variance + epsilon)` is read by precedence climbing. Names side by side are a product, as in `J^T H J`, but
words are not, so that prose is no formula: what cannot be read stays text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<name>[A-Za-z]\w*)|(?P<operator>\*\*|<-|<=|>=|!=|\.\.\.|[-+*/@^=<>()\[\]|,!])"
)
LINKING_WORDS = r"if|where|else|along|over|for|with|of|after|on|at|or|and|is|are|to"
PART = re.compile(rf"(,\s+(?:or|and|else)\s|,\s\s+|[,;:.](?:\s|$)|\s(?:{LINKING_WORDS})\s)")
GREEK = set(
    re.findall(r"\w+", "alpha beta gamma delta epsilon eta theta kappa lambda mu nu pi rho sigma tau phi chi psi omega")
)
FUNCTIONS = {name: rf"\{name}" for name in re.findall(r"\w+", "exp ln log sin cos tan sinh cosh tanh max min dim det")}
FUNCTIONS |= {"log10": r"\log_{10}", "log2": r"\log_2", "gamma": r"\Gamma", "prod": r"\prod", "sum": r"\sum"}
OPERATORS = (
    "erf erfc erfinv mean tr Re Im floor round trunc cov var softmax sigmoid activation diag conj inv norm acos asin atan ceil"
)
FUNCTIONS |= {name: rf"\operatorname{{{name}}}" for name in OPERATORS.split(" ")}
PROSE = {"integral", "Sum", "Whether", "True", "False", "None"}
WITHOUT_PARENTHESES = {"ln", "log", "sum", "tr", "dim"}
RELATIONS = {"=": "=", "!=": r"\neq", "<": "<", ">": ">", "<=": r"\leq", ">=": r"\geq", "<-": r"\leftarrow"}
SUMS = {"+", "-"}
PRODUCTS = {"*": r" \cdot ", "@": r" \, "}


class NoFormula(ValueError):
    """The text is prose, or written in a way that is not read here."""


def as_latex(text: str, words: Collection[str] = ()) -> str | None:
    """A whole line; None if there is no formula in it, or one that cannot be read. Words between formulas stay."""
    parts = rendered(text, words)
    if not any(math for math, _ in parts) or any(re.search(r"[^\w\s.,:;]", part) for math, part in parts if not math):
        return None
    return "".join(part if math else rf"\text{{{quoted(part)}}}" for math, part in parts).replace(r"\text{,  }", r",\qquad ")


def rendered(text: str, words: Collection[str] = ()) -> list[tuple[bool, str]]:
    """The text cut into formulas in LaTeX, marked True, and what stays as it is."""
    found: list[tuple[bool, str]] = []
    for part in parts_of(text):
        try:
            found.append((True, Formula(part, words).latex))
        except NoFormula:
            found.append((False, part))
    return found


def parts_of(text: str) -> list[str]:
    """What stands between marks and linking words, and these; not those within brackets."""
    parts = [""]
    for piece in PART.split(text):
        if parts[-1].count("(") + parts[-1].count("[") > parts[-1].count(")") + parts[-1].count("]"):
            parts[-1] += piece
        else:
            parts.append(piece)
    return [part for part in parts if part]


def quoted(text: str) -> str:
    return re.sub(r"([_#$%&{}])", r"\\\1", re.sub(r"[\\^~`]", "", text))


class Formula:
    """One formula, read from left to right."""

    def __init__(self, text: str, words: Collection[str]) -> None:
        self.tokens = list(tokens(text.strip()))
        self.words = words
        self.at = 0
        self.depth = 0
        self.operators = 0
        self.latex = self.relation()
        only_words = re.fullmatch(r"\\text\{\w+\} = \S+", self.latex)
        if self.at < len(self.tokens) or not self.operators or only_words:
            raise NoFormula(text)

    def peek(self, ahead: int = 0) -> tuple[str, str, bool]:
        """Kind and text of a token, and whether a space stands before it."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ("end", "", False)

    def take(self, expected: str | None = None) -> str:
        _, text, _ = self.peek()
        if expected is not None and text != expected:
            raise NoFormula(text)
        self.at += 1
        return text

    def relation(self) -> str:
        left = self.total()
        while self.peek()[1] in RELATIONS:
            self.operators += 1
            left = f"{left} {RELATIONS[self.take()]} {self.total()}"
        return left

    def total(self) -> str:
        left = self.signed()
        while self.peek()[1] in SUMS and self.spaced_alike():
            self.operators += 1
            left = f"{left} {self.take()} {self.product()}"
        return left

    def spaced_alike(self) -> bool:
        """`a - b` and `a-1` are differences, `Gauss-Newton` is a name."""
        (kind, name, _), (_, sign, before), (following, after_sign, after) = self.peek(-1), self.peek(), self.peek(1)
        within_words = any(one == "name" and len(text) > 2 for one, text in ((kind, name), (following, after_sign)))
        within_words = within_words or (kind == following == "number" and sign == "-")
        if before != after or (not before and within_words):
            raise NoFormula(name)
        return True

    def signed(self) -> str:
        if self.peek()[1] == "-":
            return f"{self.take()}{self.product()}"
        return self.product()

    def product(self) -> str:
        left = self.power()
        while True:
            operator = self.peek()[1]
            if operator == "/" and self.spaced_alike():
                self.operators += 1
                self.take()
                left = rf"\frac{{{bare(left)}}}{{{bare(self.power())}}}"
            elif operator in PRODUCTS:
                self.operators += 1
                left = f"{left}{PRODUCTS[self.take()]}{self.power()}"
            elif self.begins_factor():
                left = rf"{left} \, {self.power()}"
            else:
                return left

    def begins_factor(self) -> bool:
        """Whether the next token is multiplied without a sign: never two words, which would be prose."""
        kind, text, _ = self.peek()
        if kind == "number":
            return False
        return (kind == "name" and self.is_symbol(text)) or text == "(" or (text == "|" and not self.depth)

    def is_symbol(self, name: str) -> bool:
        return len(name.partition("_")[0].rstrip("0123456789")) == 1 or name in GREEK or name in FUNCTIONS or name in self.words

    def power(self) -> str:
        base = self.primary()
        while self.peek()[1] == "!" and not self.peek()[2]:
            base += self.take()
        if self.peek()[1] in ("**", "^"):
            self.operators += 1
            self.take()
            base = rf"{{{base}}}^{{{bare(self.exponent())}}}"
        return base

    def exponent(self) -> str:
        sign = self.take() if self.peek()[1] == "-" else ""
        if self.peek()[0] == "number" and self.peek(1)[0] == "name" and not self.peek(1)[2]:
            return sign + self.take() + self.primary()
        return sign + self.power()

    def primary(self) -> str:
        kind, text, _ = self.peek()
        if kind == "number":
            return re.sub(r"^1e(-?\d+)$", r"10^{\1}", self.take())
        if kind == "name":
            return self.name()
        if text == "(":
            return self.within("(", ")", "left(", "right)")
        if text == "|":
            return self.within("|", "|", "left|", "right|")
        raise NoFormula(text)

    def within(self, opening: str, closing: str, left: str, right: str, called: bool = False) -> str:
        """Of a call with commas; without one, they make a shape or a pair, which is no formula."""
        self.operators += opening == "|"
        self.take(opening)
        self.depth += opening == "|"
        inside = self.relation()
        while called and self.peek()[1] == ",":
            self.take()
            inside = f"{inside}, {self.relation()}"
        self.take(closing)
        self.depth -= opening == "|"
        return rf"\{left} {inside} \{right}"

    def name(self) -> str:
        name = self.take()
        _, following, spaced = self.peek()
        if following == "(" and not spaced:
            return self.call(name)
        if name in PROSE or (name == "sum" and self.peek()[0] == "number"):
            raise NoFormula(name)
        if name in WITHOUT_PARENTHESES:
            self.operators += 1
            return rf"{FUNCTIONS[name]} {self.power()}"
        if following == "[" and not spaced:
            return rf"{{{symbol(name)}}}_{{{self.subscript()}}}"
        if not self.is_symbol(name) and (self.peek()[0] in ("name", "number") or following in ("(", "|")):
            raise NoFormula(name)
        return symbol(name)

    def call(self, name: str) -> str:
        self.operators += 1
        arguments = self.within("(", ")", "left(", "right)", called=True)
        if name == "sqrt":
            return rf"\sqrt{{{bare(arguments)}}}"
        if name not in FUNCTIONS and len(name) > 3 and "_" not in name:
            return rf"\operatorname{{{name}}}{arguments}"
        return f"{FUNCTIONS.get(name) or symbol(name)}{arguments}"

    def subscript(self) -> str:
        self.take("[")
        inside = self.total()
        while self.peek()[1] == ",":
            self.take()
            inside = f"{inside}, {self.total()}"
        self.take("]")
        return inside


def tokens(text: str) -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    place, spaced = 0, False
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise NoFormula(text)
        if match.lastgroup != "space":
            found.append((match.lastgroup or "", match[0], spaced))
        spaced, place = match.lastgroup == "space", match.end()
    return found


def symbol(name: str) -> str:
    """A letter with what stands below it, a Greek letter, or a word."""
    if re.fullmatch(r"d[a-z](_\w+)?", name):
        return f"d{symbol(name[1:])}"
    if name in FUNCTIONS and name not in GREEK:
        return FUNCTIONS[name]
    head, _, below = name.partition("_")
    letter = re.fullmatch(r"([A-Za-z])(\d*)", head)
    if letter:
        index = letter[2] or (below if len(below) == 1 else rf"\text{{{quoted(below)}}}" if below else "")
        return f"{letter[1]}_{{{index}}}" if index else letter[1]
    return rf"\{name}" if name in GREEK else rf"\text{{{quoted(name)}}}"


def bare(latex: str) -> str:
    """Without the parentheses around all of it, where a fraction or a root shows how far it goes."""
    begin, end = r"\left( ", r" \right)"
    inside = latex.removeprefix(begin).removesuffix(end)
    whole = latex.startswith(begin) and latex.endswith(end) and balanced(inside)
    return inside if whole else latex


def balanced(latex: str) -> bool:
    depth = 0
    for mark in re.findall(r"\\left\(|\\right\)", latex):
        depth += 1 if mark == r"\left(" else -1
        if depth < 0:
            return False
    return depth == 0
