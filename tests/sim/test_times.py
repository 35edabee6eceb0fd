"""Kernels of many fields do not get slower, and use the partitions of the machine (tests/bench/times)."""
import pytest

from support import times


@pytest.mark.parametrize("name", times.FIELDS)
def test_no_kernel_gets_slower_or_narrower(name):
    golden, exempt, found = times.golden(), times.narrow(), []
    for kernel, row, is_wide in times.field(name):
        us, _ = golden[kernel]
        if row["us"] > times.SLOWER * us:
            found.append(f"{kernel} takes {row['us']:.1f} us, not {us:.1f}")
        if not is_wide and kernel not in exempt:
            found.append(f"{kernel} executes {row['narrow']} of {row['instructions'] + row['transfers']} instructions on one partition, "
                         "and no remark says why")
    assert not found, "\n".join(found)


def test_the_files_name_kernels_that_exist():
    sources = {name: (times.FOLDER / f"{name}.py").read_text() for name in times.FIELDS}
    assert len(times.golden()) == sum(text.count("@trace(") for text in sources.values()) >= 60
    for kernel in [*times.golden(), *times.narrow()]:
        field, _, name = kernel.partition(".")
        assert f"def {name}(" in sources[field], kernel


def test_a_longer_time_is_noted_only_with_a_reason():
    assert times.noted(None, 5.0, None) == (5.0, "")
    assert times.noted((5.0, "# once"), 4.0, None) == (4.0, "")
    assert times.noted((5.0, ""), 6.0, None) == (5.0, "")
    assert times.noted((5.0, ""), 5.1, "why") == (5.0, "")
    assert times.noted((5.0, ""), 6.0, "why") == (6.0, "# why")
