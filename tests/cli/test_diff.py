"""nkx diff: the first stage and operation where two results part, in text and in values."""
import re
import subprocess

import pytest

from support.paths import EXAMPLES, WORKER

SOFTMAX = next(p for p in EXAMPLES if p.stem == "03_softmax")


def diff(*arguments):
    done = subprocess.run([WORKER, "diff", *arguments], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def changed(folder, *pairs):
    text = SOFTMAX.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "other.py").write_text(text)
    return folder / "other.py"


def lines_of(said, what):
    """The stage of a place, and the text of each side there."""
    place = re.search(rf"^{what}: (\S+)\n((?:  [AB] .*\n)+)", said, re.M)
    return place[1], {side: text for side, text in re.findall(r"^  ([AB]) line \d+: +(.*)$", place[2], re.M)}


def test_a_kernel_is_like_itself(tmp_path):
    status, said, _ = diff(SOFTMAX, changed(tmp_path))
    assert status == 0 and re.fullmatch(r"the texts of the \d+ stages that both have are the same\n", said)


def test_another_function_is_named_in_text_and_in_values(tmp_path):
    """exp is applied to the same numbers; what it computes is the first that differs."""
    status, said, _ = diff(SOFTMAX, changed(tmp_path, ("np.exp(", "np.cosh(")), "--no-values")
    assert status == 1 and "values" not in said
    stage, text = lines_of(said, "text")
    assert stage == "trace" and any("exponential" in t or "cosh" in t for t in text.values())


def test_another_constant_parts_the_values_where_it_is_used(tmp_path):
    other = changed(tmp_path, ("np.exp(x - biggest)", "np.exp(x - biggest) * (1.0 + x * 0.0 + 0.25)"))
    status, said, _ = diff(SOFTMAX, other)
    assert status == 1
    stage, text = lines_of(said, "values")
    assert stage == "trace" and all("reduce" in t for t in text.values())
    a, b = map(float, re.search(r"A has ([-\d.e+]+), B has ([-\d.e+]+)", said).groups())
    assert b == pytest.approx(1.25 * a, rel=1e-3), "the sum of values that are all larger by a quarter"


def test_a_pipeline_that_computes_the_same_parts_in_text_alone():
    status, said, _ = diff(SOFTMAX, "--b-pipeline", "without prepare-arithmetic", "--no-values")
    assert status == 1 and "text: " in said and "stages are of one side only" not in said
    status, said, _ = diff(SOFTMAX, "--b-pipeline", "reference", "--no-values")
    assert status == 1 and re.search(r"^\d+ stages are of one side only$", said, re.M)


def test_what_there_is_nothing_to_compare_of_is_refused(tmp_path):
    assert diff(SOFTMAX)[0] == 2
    (tmp_path / "wrong.py").write_text("def f(:\n")
    status, _, said = diff(SOFTMAX, tmp_path / "wrong.py")
    assert status == 1 and "wrong.py has no stages" in said
