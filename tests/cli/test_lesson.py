"""nkx lesson: the product's lessons are right, and what is wrong with a lesson is found and named with its line."""
import json
import re
import subprocess

import pytest

from support.paths import NKX, ROOT

LESSONS = sorted((ROOT / "explorer/lessons").glob("*.md"))
KERNEL = """import numpy as np
from nkigen import trace


@trace(input_specs=[((8, 4), "f32")])
def f(x):
    return np.exp(x)
"""
GOOD = f"""# Title

Summary.

## First

Text.

```python kernel
{KERNEL}```

```view
stage: trace
select: np.exp(x)
```

```fact
count trace exponential == 1
```

### Task

Negate.

```goal
count trace negate == 1
```

```python solution
{KERNEL.replace("exp(x)", "exp(-x)")}```
"""
CLICK = """```click
stage: cse
proof: has trace exponential
```
"""


def nkx(*arguments):
    return subprocess.run([NKX, "lesson", *arguments], capture_output=True, text=True)


def checked(tmp_path, texts):
    """The messages about each text, in one process."""
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.md").write_text(text)
    done = nkx("check", *(tmp_path / f"{i}.md" for i in range(len(texts))))
    said = [[] for _ in texts]
    for line in done.stderr.splitlines():
        found = re.match(rf"{tmp_path}/(\d+)\.md:(\d+): (.*)", line)
        assert found, line
        said[int(found[1])].append((int(found[2]), found[3]))
    assert done.returncode == (1 if any(said) else 0)
    return said


def test_every_lesson_of_ours_is_right_on_what_the_pipeline_does_today():
    assert len(LESSONS) == 12
    done = nkx("check", *LESSONS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": right\n") == len(LESSONS)


def test_a_lesson_becomes_json_for_the_page(tmp_path):
    (tmp_path / "l.md").write_text(GOOD)
    lesson = json.loads(nkx("json", tmp_path / "l.md").stdout)
    assert (lesson["title"], lesson["summary"]) == ("Title", "Summary.")
    (step,) = lesson["steps"]
    assert step["kernel"] == KERNEL and step["text"] == "Text." and step["view"]["selected"] == "7:12-7:21"
    assert step["task"] | {"solution": None} == {"kind": "change", "text": "Negate.", "solution": None, "goals": [
        {"text": "count trace negate == 1", "kind": "count", "stage": "trace", "what": "negate", "relation": "==", "number": 1}]}


FAULTS = [
    (GOOD, []),
    # what is no lesson
    (GOOD.replace("# Title", "Title", 1), [(1, 'a lesson begins with "# Title"')]),
    ("# Only a title\n", [(1, 'a lesson has a title, "# Title", and steps')]),
    (GOOD.replace("count trace exponential == 1", "count trace exponential"), [(25, '"count trace exponential" is not a condition')]),
    (GOOD.replace("count trace exponential == 1", "count trace exponential == one"), [(25, "is not a condition")]),
    (GOOD.replace("stage: trace\nselect", "scene: trace\nselect"), [(20, "expected target, stage")]),
    (GOOD.replace("```python kernel", "```python"), [(5, "has no kernel")]),
    (GOOD.replace("### Task\n\nNegate.\n", ""), [(29, 'it belongs below "### Task"')]),
    (GOOD.replace("```goal\ncount trace negate == 1\n```\n", ""), [(5, "the task of")]),
    (GOOD[: GOOD.index("```python solution")], [(5, "a goal and a solution belong together")]),
    (GOOD.replace("select: np.exp(x)", "select: np.tanh(x)"), [(5, 'the kernel has no "np.tanh(x)" to select')]),
    (GOOD[:-4], [(43, "the fence has no end")]),
    # what is not so
    (GOOD.replace("== 1\n```\n\n### Task", "== 2\n```\n\n### Task"), [(25, "the fact does not hold: count trace exponential == 2; there is 1")]),
    (GOOD.replace("stage: trace\nselect", "stage: tracing\nselect"), [(5, "the kernel has no stage tracing")]),
    (GOOD.replace("select: np.exp(x)", "select: np.exp"), [(5, "no line of the stage comes from the selection")]),
    (GOOD.replace("select: np.exp(x)", "line: tanh"), [(5, 'no line of the stage has "tanh"')]),
    (GOOD.replace("negate == 1", "exponential == 1"), [(28, "the task is solved by the kernel as it is")]),
    (GOOD.replace("negate == 1", "tanh == 1"), [(33, "with the solution, a goal does not hold: count trace tanh == 1; there is 0")]),
    (GOOD.replace("np.exp(-x)", "np.exp(-y)"), [(28, "the solution is refused"), (33, "with the solution, a goal does not hold")]),
    (GOOD.replace("return np.exp(x)\n```\n\n```view", "return np.exp(x\n```\n\n```view"), None),
    (GOOD[: GOOD.index("```goal")] + CLICK, []),
    (GOOD[: GOOD.index("```goal")] + CLICK.replace("cse", "trace"), [(28, "the task is solved before anything is clicked")]),
    (GOOD[: GOOD.index("```goal")] + CLICK.replace("has trace", "lacks trace"), [(34, "the proof does not hold")]),
    (GOOD.replace("```view", "```edit dce\n- tanh\n+ exponential\n```\n\n```view"), [(5, 'stage dce has no "tanh" to change')]),
]


def test_what_is_wrong_with_a_lesson_is_named_with_its_line(tmp_path):
    said = checked(tmp_path, [text for text, _ in FAULTS])
    for (text, wanted), found in zip(FAULTS, said, strict=True):
        if wanted is None:
            assert found, text
            continue
        assert [n for n, _ in found] == [n for n, _ in wanted], (wanted, found)
        assert all(w in f for (_, w), (_, f) in zip(wanted, found, strict=True)), (wanted, found)


@pytest.mark.parametrize("arguments", [(), ("check",), ("json",), ("prove", "x.md")])
def test_wrong_usage_is_refused(arguments):
    assert nkx(*arguments).returncode == 2
