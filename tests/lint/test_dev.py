"""The tools of `make dev`: the hook that formats staged C files, compile_commands.json, and the watch."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev"))
import compile_commands  # noqa: E402
import watch  # noqa: E402

UGLY, NICE = "int  f( void ){return 1;}\n", "int f(void) {\n  return 1;\n}\n"


@pytest.fixture
def repo(tmp_path):
    """A git repository with the hook installed."""
    (tmp_path / "dev").mkdir()
    for name in ("dev/pre-commit", "dev/install-hook.sh", ".clang-format"):
        shutil.copy(ROOT / name, tmp_path / name)

    def git(*args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=tmp_path, env=env, check=True,
                              capture_output=True, text=True).stdout
    git("init", "-q")
    subprocess.run([tmp_path / "dev/install-hook.sh"], cwd=tmp_path, check=True)
    return tmp_path, git


def test_a_staged_file_is_formatted_in_commit_and_checkout(repo):
    place, git = repo
    (place / "a.c").write_text(UGLY)
    git("add", "a.c")
    git("commit", "-q", "-m", "a")
    assert git("show", "HEAD:a.c") == NICE == (place / "a.c").read_text()
    assert git("status", "--short", "a.c") == ""


def test_changes_that_are_not_staged_are_left_alone(repo):
    place, git = repo
    (place / "a.c").write_text(UGLY)
    git("add", "a.c")
    (place / "a.c").write_text(UGLY + UGLY)
    git("commit", "-q", "-m", "a")
    assert git("show", "HEAD:a.c") == NICE
    assert (place / "a.c").read_text() == UGLY + UGLY


def test_another_hook_is_not_replaced(repo):
    place, _ = repo
    hook = place / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    r = subprocess.run([place / "dev/install-hook.sh"], cwd=place, check=True, capture_output=True, text=True)
    assert "not installed" in r.stdout and hook.read_text() == "#!/bin/sh\n"


def test_compile_commands_are_read_from_what_make_would_run():
    text = "mkdir -p build/obj\ngcc -std=c17 -DA='\"x\"' -MMD -c -o build/obj/a/b.o a/b.c\nar rcs lib.a build/obj/a/b.o\n"
    assert compile_commands.entries(text, "/here") == [
        {"directory": "/here", "file": "a/b.c", "output": "build/obj/a/b.o",
         "arguments": ["gcc", "-std=c17", '-DA="x"', "-MMD", "-c", "-o", "build/obj/a/b.o", "a/b.c"]}]


def test_the_watch_sees_changed_new_and_removed_sources_and_nothing_else(tmp_path):
    for name in ("compiler/a.c", "web/src/b.ts", "explorer/notes.txt", "build/gen/c.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    first = watch.state(tmp_path)
    assert sorted(first) == [str(tmp_path / "compiler/a.c"), str(tmp_path / "web/src/b.ts")]
    os.utime(tmp_path / "compiler/a.c", ns=(1, 1))
    second = watch.state(tmp_path)
    assert second != first
    (tmp_path / "compiler/new.h").write_text("")
    (tmp_path / "web/src/b.ts").unlink()
    assert watch.state(tmp_path).keys() == {str(tmp_path / "compiler/a.c"), str(tmp_path / "compiler/new.h")}
