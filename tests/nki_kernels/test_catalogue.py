"""Every situation of the catalogue of errors (support/nki_catalogue.py): its code, its range, and what is said: what was found,
what is possible, and what to do instead."""
import functools
import textwrap

import pytest

from support import compiler
from support.nki_catalogue import CASES, HEADS, KERNELS

ALL = [(code, *case) for code, cases in CASES.items() for case in cases]
AT_ONCE = 15


def is_whole(text):
    return text.startswith(("@nki", "@«nki"))


def source_of(number):
    """The definitions and the kernel of a case, with « and »."""
    _, _, generation, text, *_ = ALL[number]
    text = text.replace("$", str(number))
    if is_whole(text):
        return "\n" + text
    definitions, body = text.split("@@\n") if "@@\n" in text else ("", text)
    return "\n" + definitions + KERNELS[generation].replace("$", str(number)).replace("{body}", textwrap.indent(body, "    "))


@functools.cache
def batches():
    """The cases that are compiled together: what is wrong with the module itself ends all of them."""
    out, open_of = [], {}
    for number, (code, _, generation, text, *_) in enumerate(ALL):
        if is_whole(text) or code == "nki-memory-full":  # of which the first one is shown
            out.append([number])
        else:
            some = open_of.get(generation)
            if some is None or len(some) == AT_ONCE:
                open_of[generation] = some = []
                out.append(some)
            some.append(number)
    return out


@functools.cache
def compiled(batch):
    """{case: (errors, [(line, column, end column) of the range, or nothing])}"""
    numbers = batches()[batch]
    text, lines = HEADS[ALL[numbers[0]][2]], {}
    for n in numbers:
        first = text.count("\n") + 1
        text += source_of(n)
        lines[n] = range(first, text.count("\n") + 1)
    result = compiler.compile(text.replace("«", "").replace("»", ""))
    found = {}
    for n in numbers:
        at = [(k, line.index("«") + 1, line.index("»") if "»" in line else None) for k, line in enumerate(text.splitlines(), 1)
              if k in lines[n] and "«" in line]
        found[n] = [d for d in result["diagnostics"] if d["severity"] == "error" and d["range"]["line"] in lines[n]], at
    return found


@pytest.mark.parametrize("number", range(len(ALL)), ids=[f"{c[0]} {c[2]} {c[1]}" for c in ALL])
def test_a_situation_has_its_code_its_range_and_says_what_to_do(number):
    code, _, _, _, found, remedy = ALL[number]
    batch = next(k for k, numbers in enumerate(batches()) if number in numbers)
    errors, places = compiled(batch)[number]
    assert [d["code"] for d in errors] == [code], errors
    [d] = errors
    assert all(words in d["message"] for words in found), d
    assert remedy is None or remedy in d.get("hint", "") and d["hint"], d
    for line, col, end in places:
        place = d["range"]
        assert (place["line"], place["col"]) == (line, col) and end in (None, place["end_col"]), place


def test_each_code_of_errors_has_situations():
    assert all(CASES.values())
