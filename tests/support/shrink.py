"""What is wrong with a random kernel, and the same fault with as few lines as still have it.

    PYTHONPATH=tests python3 -m support.shrink FILE KERNEL     prints what of KERNEL is still refused, wrong or dies in the same way
"""
import ast
import re
import sys

from support import compiler
from support.paths import ROOT

LISTED = set(re.findall(r'^DIAG\(\w+, "([\w-]+)"', (ROOT / "compiler/base/diag.def").read_text(), re.M))
FAULTS = {"internal", "check-failed", "worker-died", "python-exception", "ir-invalid", "hlo-invalid", "time-limit",
          "memory-limit"}


def faults(result):
    """What is wrong with a result: [(kernel, stage or None, what)]; and its refusals: [(kernel, stage, code, message)]."""
    bad, refused = [], []
    last = compiler.pipeline()
    names = [k["name"] for k in result["kernels"]]
    for d in result["diagnostics"]:
        if d["severity"] != "error":
            continue
        where = (names[d["kernel"]] if 0 <= d.get("kernel", -1) < len(names) else None, d.get("stage"))
        if d["code"] not in LISTED or d["code"] in FAULTS:
            bad.append((*where, f"{d['code']}: {d['message']}"))
        else:
            refused.append((*where, d["code"], d["message"]))
    for k in result["kernels"]:
        for stage in k["stages"]:
            if stage.get("check", {}).get("status") == "fail":
                bad.append((k["name"], stage["name"], str(stage["check"])))
            elif "check" in stage and not compiler.is_checked(stage):
                bad.append((k["name"], stage["name"], "unchecked: " + str(stage.get("check"))))
        if len(k["stages"]) < len(last) and not any(r[0] in (k["name"], None) for r in refused + bad):
            bad.append((k["name"], None, f"ends after {len(k['stages'])} stages without a word"))
    return bad, refused


def cut(text, name):
    """The head of a file and the one kernel called name."""
    head, *kernels = re.split(r"\n\n+(?=@trace)", text)
    return head + "\n\n" + next(k for k in kernels if f"def {name}(" in k)


def without_parameters(text):
    """The same without parameters that the body does not read."""
    specs, names = re.search(r"input_specs=(\[.*\])\)", text), re.search(r"def \w+\((.*)\):", text)
    body = text[names.end():]
    kept = [(s, n) for s, n in zip(ast.literal_eval(specs[1]), names[1].split(", ")) if re.search(rf"\b{n}\b", body)]
    return (text[:specs.start(1)] + repr([s for s, _ in kept]) + text[specs.end(1):names.start(1)]
            + ", ".join(n for _, n in kept) + text[names.end(1):])


def shrink(text, fails):
    """The first kernel of a file with as few lines as still make fails(text) true."""
    lines = text.rstrip().split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("def ")) + 1
    changed = True
    while changed:
        changed = False
        for i in range(len(lines) - 2, first - 1, -1):
            made = lines[i].strip().split(" = ")[0]
            tries = [lines[:i] + lines[i + 1:]]
            if made.isidentifier():
                tries.append(lines[:i + 1] + [f"    return {made}"])
            for fewer in tries:
                if len(fewer) < len(lines) + (fewer[-1] != lines[-1]) and fewer != lines and fails("\n".join(fewer) + "\n"):
                    lines, changed = fewer, True
                    break
            if changed:
                break
    smaller = without_parameters("\n".join(lines) + "\n")
    return smaller if fails(smaller) else "\n".join(lines) + "\n"


def fault_of(text):
    """What kind of fault or refusal the file has, without what changes when lines go; None if it is right."""
    bad, refused = faults(compiler.compile(text, check=True))
    return re.sub(r"[\d.]+|%\w+", "", str((bad + refused)[0][1:])) if bad or refused else None


if __name__ == "__main__":
    whole = cut(open(sys.argv[1]).read(), sys.argv[2])
    fault = fault_of(whole)
    print(shrink(whole, lambda text: fault_of(text) == fault) if fault else "this kernel is right")
