"""The rows in which the page shows a stage: each line of the text has exactly one, and each row knows its lines."""
import json
import os
import pathlib
import subprocess

import pytest

from support import golden
from support.marks import few
from support.paths import BUILD, EXAMPLES, NKX, ROOT

GOLDEN = pathlib.Path(__file__).parent / "golden"


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """Runs rows.ts with these arguments; its output."""
    script = tmp_path_factory.mktemp("rows") / "rows.mjs"
    run(ROOT / "web/node_modules/.bin/esbuild", ROOT / "tests/browser/rows.ts", "--bundle", "--platform=node", "--format=esm", f"--outfile={script}")
    node = pathlib.Path(os.environ.get("VENV", BUILD / "venv")) / "bin/node"
    return lambda *arguments: run(node if node.exists() else "node", script, *arguments)


@pytest.fixture(scope="session")
def checked(rows, tmp_path_factory):
    """What rows.ts says about an example for a target; found out once."""
    known = {}

    def check(example, target):
        if (example, target) not in known:
            result = tmp_path_factory.mktemp("result") / "result.json"
            run(NKX, "compile", example, "--target", target, "--quiet", "--json", result)
            known[example, target] = json.loads(rows("check", result))
            result.unlink()
        return known[example, target]

    return check


@pytest.mark.parametrize("target", few(["trn2", "trn1", "trn3"], 1))
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_every_line_of_every_stage_has_exactly_one_row(checked, example, target):
    found = checked(example, target)
    assert found["wrong"][:5] == []
    assert found["instructions"] > 0


def test_a_row_of_an_instruction_usually_fits_62_columns(checked):
    count = wide = wider = 0
    for example in EXAMPLES:
        found = checked(example, "trn2")
        count += found["instructions"]
        wide += found["wide"]
        wider += found["wider"]
    assert wide < count / 3 and wider < count / 7, (wide, wider, count)  # transfers are the wide ones, and many where loops are written out


@pytest.mark.parametrize("name", ["every-operation", "unusual", "streams"])
def test_the_compact_form_of_each_instruction(rows, tmp_path, name):
    """The golden file is for reading: it says how each form of the printer looks on the page."""
    text = tmp_path / f"{name}.nisa"
    text.write_text(run(NKX, "opt", "--print-nisa", ROOT / f"tests/lit/nisa-text/{name}.mlir"))
    got = rows("print", text)
    golden.check(GOLDEN / f"{name}.rows", got)
