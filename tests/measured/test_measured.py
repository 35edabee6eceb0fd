"""Kernels that were measured on devices take about as long on the simulated machine."""

import pytest

from measured.compare import FIGURES, GOALS, RESULTS, ROOT, error, figures, rows, summary, totals
from measured.kernels import CASES


@pytest.fixture(scope="module")
def done():
    return list(rows())


@pytest.mark.parametrize("group", GOALS, ids=lambda g: "-".join(g))
def test_the_median_error_of_each_group_is_within_its_goal(done, group):
    by_group = {(target, kind): (middle, goal) for target, kind, _, middle, goal in summary(done)}
    middle, goal = by_group[group]
    assert middle <= goal


def test_the_figures_that_users_see_are_those_of_these_runs(done):
    assert FIGURES.read_text() == figures(done), "python3 -m measured.compare --write"
    results, readme = RESULTS.read_text(), " ".join((ROOT / "README.md").read_text().split())
    for target, n, middle, worst in totals(done):
        if n:
            assert f"- {target}, all {n} kernels: median error {middle / 10:.1f}%, worst error {worst / 10:.1f}%" in results
            assert f"{middle / 10:.0f} % on {target}" in readme and f"{worst / 10:.0f} % on {target}" in readme


def test_traced_kernels_are_within_a_fifth(done):
    for case, us, ratio in done:
        if case.kind == "traced":
            assert error(ratio) <= 0.2, f"{case.name}: {us:.1f} us, measured {case.measured_us:g}"


def test_a_case_gives_the_same_text_twice():
    for case in CASES:
        assert case.build().text() == case.build().text()
