"""nkx tune: the knobs that it prints make the kernel as fast as it says, and a bad knob is found."""
import json
import subprocess

import pytest

from support import timing
from support.paths import WORKER

KERNEL = """\"\"\"Two products.\"\"\"
import numpy as np
from nkigen import trace{more}


def half(t):
    return t * 0.5  # é: columns count characters


@trace(input_specs=[((256, 256), "f32"), ((256, 512), "f32")])
def up(x, w):
    y = half(np.exp(x)) @ w
{knob}    return np.tanh(y) + 1.0
"""
BAD = "    knob.knob(y).tile_op(tile_size=[32, 64, 32]).layout(mem_space='Hbm')\n"


def tune(folder, source, *arguments):
    """The frames' objects, and the text with the best knobs."""
    (folder / "kernel.py").write_text(source)
    done = subprocess.run([WORKER, "tune", folder / "kernel.py", "--quiet", "--json", "-", "--write", folder / "best.py", "--seconds", "60", *arguments],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "ok" and result["kernels"] == []
    return result["tune"], (folder / "best.py").read_text()


def simulated(path):
    (kernel,) = timing.compiled(path)
    return timing.rows([timing.last_text(kernel)])[0]


@pytest.mark.parametrize("more, knob", [("", ""), (", knob", BAD)], ids=["plain", "bad knob"])
def test_every_point_reproduces_its_time_exactly(tmp_path, more, knob):
    source = KERNEL.format(more=more, knob=knob)
    frames, best = tune(tmp_path, source, "--candidates", "40")
    points = frames[-1]["points"]
    assert frames[-1]["done"] and frames[-1]["kernel"] == "up" and points[0]["source"] == best
    for point in points:
        (tmp_path / "point.py").write_text(point["source"])
        row = simulated(tmp_path / "point.py")
        assert (row["us"], row["sbuf_peak"]) == (pytest.approx(point["us"], abs=1e-3), point["sbuf"])
    assert [p["us"] for p in points] == sorted(p["us"] for p in points)
    assert [p["sbuf"] for p in points] == sorted((p["sbuf"] for p in points), reverse=True)


def test_a_bad_knob_is_dropped_and_the_result_is_as_fast_as_without_it(tmp_path):
    frames, best = tune(tmp_path, KERNEL.format(more=", knob", knob=BAD))
    (tmp_path / "plain.py").write_text(KERNEL.format(more="", knob=""))
    assert "tile_size=[32, 64, 32]" not in best
    assert frames[-1]["points"][0]["us"] <= simulated(tmp_path / "plain.py")["us"] + 1e-3 < frames[-1]["start_us"]


def test_the_budget_ends_the_search_and_candidates_are_reported_as_they_come(tmp_path):
    frames, _ = tune(tmp_path, KERNEL.format(more="", knob=""), "--candidates", "3")
    assert [f["number"] for f in frames[:-1]] == [0, 1, 2, 3]
    assert frames[-1]["stopped"] == "candidates" and frames[-1]["tried"] == 3
    for frame in frames[1:-1]:
        assert frame["knobs"] and (frame.get("refused") or frame["us"] > 0)


def test_what_has_no_knobs_is_refused(tmp_path):
    (tmp_path / "kernel.hlo").write_text("HloModule m\n")
    done = subprocess.run([WORKER, "tune", tmp_path / "kernel.hlo"], capture_output=True, text=True)
    assert done.returncode == 2 and "only a kernel in Python has knobs" in done.stderr
    (tmp_path / "kernel.py").write_text("def f(:\n")
    done = subprocess.run([WORKER, "tune", tmp_path / "kernel.py"], capture_output=True, text=True)
    assert done.returncode == 1 and "nothing to tune" in done.stderr
