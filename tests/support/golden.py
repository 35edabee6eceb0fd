"""Golden files: what a test computes is what the file holds.

NKX_GOLDEN=write writes the files anew; the change is then read in `git diff`.
"""
import difflib
import os

from support.paths import ROOT

LINES_MAX = 80  # of a difference that is shown


def check(path, text):
    __tracebackhide__ = True
    if os.environ.get("NKX_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    golden = path.read_text() if path.exists() else ""
    if golden == text:
        return
    name = str(path.relative_to(ROOT))
    lines = list(difflib.unified_diff(golden.splitlines(), text.splitlines(), name, "computed now", lineterm=""))
    more = [f"… and {len(lines) - LINES_MAX} lines more"] if len(lines) > LINES_MAX else []
    raise AssertionError("\n".join([f"{name} differs.  If the change is right: NKX_GOLDEN=write pytest …",
                                    *lines[:LINES_MAX], *more]))
