"""docs/adding.md, followed literally: in a copy of the tree each block of a worked example is put where the sentence above it
says, and each command is run.  The copy has the build, too, so that only what changes is compiled.
"""
import os
import shutil
import subprocess

import pytest

from support import markdown
from support.paths import BUILD, ROOT

PAGE = markdown.sections((ROOT / "docs/adding.md").read_text())
WORKED = ["A NumPy operation", "A pass", "A route"]
SHARED = ["build/venv", "build/stamps", "web/node_modules"]  # nothing is written there
BUILT = ["bin", "lib", "obj", "gen", "python", "examples", "web", "test", "dialects.irdl"]


def test_each_worked_example_names_the_place_of_every_block_and_runs_its_test():
    for name in WORKED:
        blocks = list(markdown.blocks(PAGE[name]))
        assert all(b.language == "sh" or markdown.place(b.before) for b in blocks)
        commands = "".join(b.text for b in blocks if b.language == "sh")
        made = [markdown.place(b.before)[1] for b in blocks if b.language != "sh"]
        assert "make binaries" in commands
        assert any(p.startswith("tests/") and (p in commands or os.path.dirname(p) in commands) for p in made), name


def scratch_tree(to):
    """The tracked files, and a build of its own that is up to date.  Times are kept, so that make sees no change."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.split("\0"):
        if name and (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / "build").mkdir()
    for name in SHARED:
        (to / name).symlink_to((ROOT / name).resolve())
    subprocess.run(["cp", "-a", *[BUILD / n for n in BUILT if (BUILD / n).exists()], to / "build"], check=True)
    subprocess.run(["git", "init", "-q"], cwd=to, check=True)
    subprocess.run(["git", "add", "-A"], cwd=to, check=True)
    return to


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_example_builds_and_its_test_passes(tmp_path, name):
    tree = scratch_tree(tmp_path)
    # what the page says is run with all its tests, also in a sample of them
    environment = {k: v for k, v in os.environ.items() if k not in ("BUILD", "VENV", "NKX_SAMPLE", "NKX_ROUND")}
    for block in markdown.blocks(PAGE[name]):
        if block.language != "sh":
            markdown.insert(tree, block)
            continue
        r = subprocess.run(["sh", "-e", "-c", block.text], cwd=tree, env=environment, capture_output=True, text=True)
        assert r.returncode == 0, f"line {block.line} of {name}:\n{block.text}{r.stdout[-4000:]}{r.stderr[-4000:]}"
        assert "warning:" not in r.stderr, r.stderr
