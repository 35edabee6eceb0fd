"""Patterns on the texts of stages (compiler/driver/patterns.c): what they find is what LLVM's FileCheck finds."""
import json
import os
import random
import re
import subprocess

import pytest

from support import warm
from support.paths import ROOT

EXAMPLE = (ROOT / "explorer/examples/03_softmax.py").read_bytes()
COUNT = int(os.environ.get("NKX_PATTERNS", "60"))


def tried(tmp_path, patterns, *flags, source=EXAMPLE):
    """The result, and the exit status."""
    path = tmp_path / "patterns.txt"
    path.write_text(patterns)
    done = warm.run("compile", "-", "--quiet", "--json", "-", "--check-file", str(path), *flags, input=source)
    return json.loads(done.stdout), done.returncode


def stage(result, name):
    return next(s for s in result["kernels"][0]["stages"] if s["name"] == name)


@pytest.fixture(scope="module")
def texts():
    done = warm.run("compile", "-", "--quiet", "--json", "-", input=EXAMPLE)
    return {s["name"]: s["text"] for s in json.loads(done.stdout)["kernels"][0]["stages"]}


def drawn(r, text):
    """Patterns made of pieces of a text, mostly in its order, with regular expressions and names here and there."""
    lines = text.split("\n")
    at, out, names = 0, [], []
    for number in range(r.randint(1, 7)):
        at = min(len(lines) - 1, max(0, at + r.choice([0, 1, 1, 1, 2, 5, -1])))
        words = lines[at].split() or [""]
        a = r.randrange(len(words))
        piece = " ".join(words[a:a + r.randint(1, 3)]).replace("[[", "").replace("{{", "")
        found = re.search(r"%\w+", piece)
        if found and r.random() < 0.4:
            name = f"N{number}"
            piece = piece.replace(found[0], f"[[{name}:%[a-z0-9_]+]]", 1)
            names.append(name)
        elif found and names and r.random() < 0.4:
            piece = piece.replace(found[0], f"[[{r.choice(names)}]]", 1)
        elif r.random() < 0.3:
            piece = re.sub(r"\d+", "{{[0-9]+}}", piece, count=1)
        kind = r.choice(["", "", "", "-NEXT", "-SAME", "-NOT", "-DAG", "-LABEL", "-COUNT-2", "-EMPTY"])
        if kind in ("-NEXT", "-SAME", "-EMPTY") and not any(re.search(r"CHECK(-LABEL|-COUNT-2)?:", o) for o in out):
            kind = ""
        if kind == "-LABEL" and "[[" in piece or not piece:
            kind = ""
        if kind == "-EMPTY":
            piece = ""
        out.append(f"// CHECK{kind}: {piece or '{{.}}' if kind != '-EMPTY' else ''}".rstrip())
    return "\n".join(out) + "\n"


def test_random_lines_are_found_as_filecheck_finds_them(tmp_path, texts):
    r, verdicts = random.Random(int(os.environ.get("NKX_SEED", "1"))), []
    names = ["trace", "hlo-to-linalg", "one-shot-bufferize", "linalg-to-nisa", "engine-programs"]
    for _ in range(COUNT):
        name = r.choice(names)
        patterns = f"// STAGE: {name}\n" + drawn(r, texts[name])
        result, status = tried(tmp_path, patterns)
        text = tmp_path / "text.txt"
        text.write_text(texts[name])
        filecheck = subprocess.run(["/usr/lib/llvm-22/bin/FileCheck", str(tmp_path / "patterns.txt"), f"--input-file={text}"], capture_output=True, text=True)
        ours = stage(result, name).get("patterns", {"ok": False})["ok"]
        assert ours == (filecheck.returncode == 0) == (status == 0), (patterns, result["diagnostics"], filecheck.stderr)
        verdicts.append(ours)
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9, "neither verdict is rare"


def test_each_line_says_where_it_was_found_and_the_first_that_was_not_says_why(tmp_path, texts):
    lines = texts["hlo-to-linalg"].split("\n")
    at = next(i for i, line in enumerate(lines) if "linalg.exp" in line) + 1
    result, status = tried(tmp_path, "// STAGE: hlo-to-linalg\n// CHECK: linalg.exp\n// CHECK: linalg.no_such\n// STAGE: engine-programs\n// CHECK: engine\n")
    found = stage(result, "hlo-to-linalg")["patterns"]
    assert status == 1 and found == {"ok": False, "found": [[2, at]], "line": 3, "at": at, "message": f"it is not there, from line {at} on"}
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert (error["code"], error["stage"], error["range"]["file"], error["range"]["line"]) == ("pattern-failed", "hlo-to-linalg", "patterns", 3)
    assert stage(result, "engine-programs")["patterns"]["ok"], "the others are tried all the same"


@pytest.mark.parametrize(("patterns", "line", "says"), [
    ("// CHECK: a\n", 1, 'a line "STAGE: name" has to come first'),
    ("// STAGE: cse\n// CHECK-NEXT: a\n", 2, "needs a line CHECK: before it"),
    ("// STAGE: cse\n// CHECK-FOO: a\n", 2, "expected CHECK:"),
    ("// STAGE: cse\n// CHECK:\n", 2, "nothing to find"),
    ("// STAGE: cse\n// CHECK: {{(}}\n", 2, "not a valid one"),
    ("// STAGE: cse\n// CHECK: {{a\n", 2, "{{ has no }}"),
    ("// STAGE: cse\n// CHECK: [[#A:]]\n", 2, "numeric variables are not known"),
    ("// STAGE: cse\n// CHECK: [[A]]\n", 2, "has no text yet"),
    ("// STAGE: cse\n// CHECK-LABEL: [[A:b]]\n", 2, "a label has no names"),
    ("// STAGE: csee\n// CHECK: a\n", 1, "the kernel has reached no stage csee"),
    ("// STAGE: cse IN other\n// CHECK: a\n", 1, "no kernel other has reached a stage cse"),
    ("// STAGE:\n", 1, 'expected "STAGE: name"'),
    ("// STAGE: cse\n// CHECK: {{" + "a" * 2001 + "}}\n", 2, "too long"),
])
def test_what_is_no_pattern_says_so_at_its_line(tmp_path, patterns, line, says):
    result, status = tried(tmp_path, patterns)
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert status == 1 and error["code"] == "pattern-failed" and error["range"]["line"] == line and says in error["message"], error
    assert len(result["kernels"][0]["stages"]) == 54, "the stages come all the same"


def test_sections_are_about_their_kernel_and_stage(tmp_path):
    two = b"""import numpy as np
from nkigen import trace

@trace(input_specs=[((4, 8), "f32")])
def first(x):
    return np.exp(x)

@trace(input_specs=[((4, 8), "f32")])
def second(x):
    return np.tanh(x)
"""
    result, status = tried(tmp_path, "STAGE: trace\nCHECK-NOT: tanh\nCHECK: exp\nSTAGE: trace IN second\nCHECK: tanh\nCHECK-NOT: exp\nSTAGE: canonicalize:2\nCHECK: memref\n", source=two)
    assert status == 0, result["diagnostics"]
    assert [[s["name"] for s in k["stages"] if "patterns" in s] for k in result["kernels"]] == [["trace", "canonicalize"], ["trace"]]
