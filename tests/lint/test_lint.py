"""Each of lint.py's checks fails when what it looks for is planted, and not otherwise."""
import pathlib
import random
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import lint  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A copy of what lint reads, to plant things in."""
    def only_sources(place, names):
        return [n for n in names if not (pathlib.Path(place) / n).is_dir()
                and pathlib.Path(n).suffix not in (".c", ".h", ".def", ".sh", ".py", ".irdl", ".proto", ".txt")]
    for name in ("compiler", "explorer", "tests/lint", "docker"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=only_sources)
    shutil.copy(ROOT / "VERSION", tmp_path)
    return tmp_path


def found(tree):
    return list(lint.problems(tree, tree / "build"))


def plant(tree, name, text):
    place = tree / name
    place.write_text(text + (place.read_text() if place.exists() else ""))


def test_the_tree_has_no_problem():
    assert list(lint.problems(ROOT, ROOT / "no-build")) == []


@pytest.mark.parametrize("file,header,text", [
    ("compiler/hlo/cse.c", "driver/job.h", "compiler/hlo may not include compiler/driver"),
    ("compiler/base/buf.c", "http/http.h", "compiler/base may not include explorer/http"),
    ("explorer/store/db.c", "pool/pool.h", "explorer/store may not include explorer/pool"),
    ("compiler/driver/job.c", "Python.h", "includes Python.h, which only"),
    ("compiler/hlo/cse.c", "mlir-c/IR.h", "includes mlir-c/IR.h, which only"),
    ("explorer/api/info.c", "sqlite3.h", "includes sqlite3.h, which only"),
])
def test_a_planted_wrong_include_is_found(tree, file, header, text):
    plant(tree, file, f'#include "{header}"\n')
    problems = found(tree)
    assert len([p for p in problems if p.startswith(f"{file}: ") and text in p]) == 1, problems


def test_a_new_folder_needs_a_line_in_the_table(tree):
    (tree / "explorer/newcomer").mkdir()
    plant(tree, "explorer/newcomer/a.c", "")
    assert found(tree) == ["explorer/newcomer/a.c: its folder is not in layers.txt"]


def test_a_folder_below_another_belongs_to_it(tree):
    (tree / "compiler/passes/group").mkdir()
    plant(tree, "compiler/passes/group/a.c", '#include "passes/pass.h"\n#include "base/buf.h"\n')
    assert found(tree) == []


def test_a_planted_circle_is_found(tree):
    plant(tree, "explorer/store/first.h", '#include "store/second.h"\n')
    plant(tree, "explorer/store/second.h", "")
    plant(tree, "explorer/store/second.c", '#include "store/third.h"\n')
    plant(tree, "explorer/store/third.h", "")
    assert found(tree) == []
    plant(tree, "explorer/store/third.c", '#include "store/first.h"\n')
    circle = "explorer/store/first explorer/store/second explorer/store/third"
    assert found(tree) == [f"a circle of files that is not in circles.txt: {circle}"]
    with open(tree / "tests/lint/circles.txt", "a") as f:
        f.write(f"{circle}: planted\n")
    assert found(tree) == []


def test_a_circle_that_is_gone_must_leave_the_list(tree):
    with open(tree / "tests/lint/circles.txt", "a") as f:
        f.write("compiler/base/buf compiler/base/log: a story\n")
    assert found(tree) == ["circles.txt: there is no such circle any more: compiler/base/buf compiler/base/log"]


def test_the_table_may_not_have_a_circle_nor_an_unused_exception(tree):
    table = tree / "tests/lint/layers.txt"
    text = table.read_text()
    table.write_text(text.replace("compiler/base:\n", "compiler/base:    compiler/hlo\n"))
    assert "layers.txt: the table has a circle: compiler/base compiler/hlo" in found(tree)
    table.write_text(text + "exception compiler/base -> compiler/hlo: a story\n")
    assert found(tree) == ["layers.txt: the exception compiler/base -> compiler/hlo is not used any more"]


def test_sql_outside_the_store_is_found_but_not_in_comments(tree):
    plant(tree, "explorer/api/info.c", '/* "SELECT a FROM b" */\n// "DELETE FROM b"\n')
    assert found(tree) == []
    plant(tree, "explorer/api/info.c", 'const char *q = "SELECT a FROM b";\n')
    assert len(found(tree)) == 1 and "explorer/api/info.c: SQL in a string" in found(tree)[0]


def test_an_undeclared_attribute_is_found(tree):
    plant(tree, "compiler/hlo/cse.c", "static int f(const struct hlo_instr *i) { return i->attrs->unheard_of; }\n")
    assert found(tree) == ["compiler/hlo/cse.c: the attribute unheard_of is not declared in compiler/hlo/attrs.def"]


def version(tree):
    return lint.subprocess.run([tree / "compiler/driver/version.sh"], capture_output=True, text=True, check=True).stdout.strip()


def write_version(tree, pipeline, release):
    (tree / "build/gen").mkdir(parents=True, exist_ok=True)
    (tree / "build/gen/version.h").write_text(f'#define NKX_RELEASE "{release}"\n#define NKX_PIPELINE "{pipeline}"\n')


def test_a_stale_version_is_found(tree):
    release = (tree / "VERSION").read_text().strip()
    write_version(tree, version(tree), release)
    assert found(tree) == []
    plant(tree, "compiler/hlo/cse.c", "\n")
    assert len(found(tree)) == 1 and "the pipeline's version is" in found(tree)[0]
    write_version(tree, version(tree), "9.9.9")
    assert len(found(tree)) == 1 and "the release is not that of VERSION" in found(tree)[0]


def test_the_version_depends_on_what_decides_the_output_and_on_nothing_else(tree):
    first = version(tree)
    assert lint.re.fullmatch(r"[0-9a-f]{12}", first) and first == version(ROOT)  # the place does not count
    for name in ("compiler/driver/compile_main.c", "compiler/package/wheel.py", "explorer/main.c"):
        plant(tree, name, "\n")
    assert version(tree) == first
    seen = {first}
    for name in ("compiler/passes/passes.def", "compiler/ir/dialects.irdl", "compiler/trace/python/nkx/ops.py", "compiler/hlo/new.c"):
        plant(tree, name, "\n")
        assert version(tree) not in seen, name
        seen.add(version(tree))


def test_circles_are_what_can_reach_each_other():
    rng = random.Random(3)
    for _ in range(200):
        n = rng.randrange(1, 8)
        edges = {i: {rng.randrange(n) for _ in range(rng.randrange(3))} for i in range(n)}

        def reach(a):
            seen, todo = set(), [a]
            while todo:
                for b in edges[todo.pop()] - seen:
                    seen.add(b)
                    todo.append(b)
            return seen
        groups = {tuple(sorted(b for b in range(n) if b == a or b in reach(a) and a in reach(b))) for a in range(n)}
        assert lint.circles(edges) == sorted(list(g) for g in groups if len(g) > 1)
