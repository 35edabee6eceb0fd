"""Each limit of the hardware: the largest size compiles, the next one is refused at the call, with what was found."""
import pytest

from support import compiler
from support.nki_limits import HEAD, LIMITS, TARGETS, kernel


@pytest.mark.parametrize("target", TARGETS)
def test_the_largest_size_compiles(target):
    mine = [x for x in LIMITS if target in x[5]]
    result = compiler.compile(HEAD + "".join(kernel(k, x[1]) for k, x in enumerate(mine)), "--target", target)
    assert result["status"] == "ok", [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert len(result["kernels"]) == len(mine)


@pytest.mark.parametrize("target", TARGETS)
def test_the_next_size_is_refused_at_its_line(target):
    mine = [x for x in LIMITS if target in x[5]]
    source, lines = HEAD, []
    for k, (_, _, refused, *_) in enumerate(mine):
        source += kernel(k, refused)
        lines.append(next(n for n, line in reversed(list(enumerate(source.splitlines(), 1))) if line.strip() == refused[-1]))
    errors = [d for d in compiler.compile(source, "--target", target)["diagnostics"] if d["severity"] == "error"]
    for (name, _, refused, code, words, _), line in zip(mine, lines):
        found = [(d["code"], d["message"]) for d in errors if d["range"]["line"] == line]
        assert len(found) == 1 and found[0][0] == code and words in found[0][1], (name, refused[-1], found)
    assert len(errors) == len(mine)
