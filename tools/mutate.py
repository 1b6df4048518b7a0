# SPDX-License-Identifier: MIT
"""The mutants of a C file: small changes that its tests ought to notice. tools/mutants.py runs them.

It reads tokens, not grammar, and relies on how clang-format writes this tree.
"""

import re
from typing import NamedTuple

KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else"}
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+ 1": "- 1", "- 1": "+ 1"}
HUGE = "123456789"

# What runs only when memory is short, what is given back (the sanitizers see to that), and what is only said.
UNTRIED = re.compile(r"\bENOMEM\b|^(free|gp_log)\(")


class Mutant(NamedTuple):
    path: str
    line: int
    function: str  # or "", outside of one
    start: int
    end: int
    new: str
    was: str  # the lines it is in, before and after, as one
    now: str

    def name(self):
        """What it is called in mutants-accepted.txt: a line may move."""
        return f"{self.path}: {self.function + ': ' if self.function else ''}{self.was} -> {self.now}"

    def __str__(self):
        return self.name().replace(f"{self.path}:", f"{self.path}:{self.line}:", 1)

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]


def blank(text):
    """The text with spaces for comments, strings and preprocessor lines, each character in its place."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^#(?:[^\n]*\\\n)*[^\n]*'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL | re.MULTILINE)


def closing(code, opening):
    """Index of the parenthesis that closes the one there."""
    depth = 0
    for index in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if not depth:
            return index
    return len(code) - 1


def conditions(code):
    """if (x): if (!(x)), unless another change does the same to it."""
    for found in re.finditer(r"\bif \(", code):
        begin, end = found.end(), closing(code, found.end() - 1)
        inside = code[begin:end]
        simple = not re.search(r"&&|\|\|", inside)
        if not (simple and (re.search("[=!]=", inside) or inside.startswith("!"))):
            yield begin, end, lambda old: f"!({old})"


def operators(code):
    for found in re.finditer(r"(?<= )(<=|>=|==|!=|<|>|&&|\|\|)(?=\s)|(?<=[\w\])] )[+-] 1\b(?![.\w])", code):
        yield found.start(), found.end(), lambda old: OTHER[old]


def negations(code):
    for found in re.finditer(r"!(?!=)", code):
        yield found.start(), found.end(), lambda old: ""


def calls(code):
    """A call whose result nobody takes, left out."""
    for found in re.finditer(r"^\t+((?:\(void\)!?)?([a-z]\w*)(?:(?:->|\.)\w+)*\()", code, re.MULTILINE):
        before = code[:found.start()].rstrip()
        end = closing(code, found.end() - 1) + 1
        if found[2] not in KEYWORDS and before.endswith((";", "{", "}", ")", "else", "do")) and code[end:end + 1] == ";":
            yield found.start(1), end, lambda old: ""


def returns(code):
    for found in re.finditer(r"\breturn ([^;]+);", code):
        if found[1].strip() not in ("0", "NULL", "false"):
            yield found.start(1), found.end(1), lambda old: "0"


def constants(text):
    """Of the text itself: its preprocessor lines are what matters."""
    for found in re.finditer(r"^#define \w+ ((?:0x[0-9a-fA-F]+|\d+)(?:[uUlL]*))(?=\s)", text, re.MULTILINE):
        for new in ("0", HUGE):
            if found[1] != new:
                yield found.start(1), found.end(1), lambda old, new=new: new


def function_at(lines, number):
    """The function that line is in, counted from 1."""
    for index in range(number - 1, -1, -1):
        if lines[index].startswith("}"):
            return ""
        if lines[index] == "{":
            head = "\n".join(lines[max(0, index - 6):index]).rpartition("\n\n")[2]
            names = re.findall(r"(\w+)\(", head)
            return names[0] if names else ""
    return ""


def on_one_line(text, start, end):
    begin, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    return re.sub(r"\s+", " ", text[begin:last]).strip()


def mutants(path, text):
    """All of a file, in the order of their places."""
    code, lines = blank(text), text.split("\n")
    changes = [change for kind in (conditions, operators, negations, calls, returns) for change in kind(code)]
    if path.endswith(".h"):
        changes = []
    found = []
    for start, end, make in sorted(changes + list(constants(text)), key=lambda change: change[:2]):
        new = make(text[start:end])
        number = text.count("\n", 0, start) + 1
        after = text[:start] + new + text[end:]
        was, now = on_one_line(text, start, end), on_one_line(after, start, start + len(new))
        if was != now and not UNTRIED.search(was):
            found.append(Mutant(path, number, function_at(lines, number), start, end, new, was, now))
    return found
