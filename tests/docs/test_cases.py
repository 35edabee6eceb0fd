"""The list of long tests names tests that exist, and every case is run within as many commits as it says."""
import pathlib
import re
from types import SimpleNamespace

from support.cases import left_out, read
from support.paths import TESTS


def test_every_test_of_the_list_exists():
    for name in read():
        path, function = name.split("::")
        assert re.search(rf"^ *(async )?def {function}\(", (TESTS / path).read_text(), re.M), name


def items(*names):
    """Items as pytest collects them: a name with brackets is a case of a function."""
    for name in names:
        path, function = name.split("::")
        case = {"callspec": None} if "[" in function else {}
        yield SimpleNamespace(path=pathlib.Path(path), name=function, originalname=function.split("[")[0], **case)


CASES = list(items(*[f"a.py::test_cases[{i}]" for i in range(10)], *[f"{f}.py::test_{i}" for f in "bc" for i in range(5)], "b.py::test_short"))
TABLE = {"a.py::test_cases": 4, **{f"{f}.py::test_{i}": 2 for f in "bc" for i in range(5)}}


def sample(number, of):
    out = [id(i) for i in left_out(of, pathlib.Path(), TABLE, number)]
    return [i for i in of if id(i) not in out]


def test_every_case_is_in_a_sample_and_what_is_short_in_all():
    samples = [sample(k, CASES) for k in range(4)]
    for item in CASES:
        every = TABLE.get(f"{item.path}::{item.originalname}", 1)
        assert [item in s for s in samples].count(True) == 4 / every, item
    assert all(2 <= len([i for i in s if i.originalname == "test_cases"]) <= 3 for s in samples)


def test_a_part_of_the_files_is_sampled_as_the_whole():
    part = [i for i in CASES if str(i.path) != "b.py"]
    assert all(sample(k, part) == [i for i in sample(k, CASES) if i in part] for k in range(4))
