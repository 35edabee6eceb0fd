"""Sources: what the lines of all stages refer to is reported once, and a merged operation lists its first places only."""
import json

import pytest

from support import warm
from support.paths import ROOT

SHOWN = 8  # SRC_LOCS_SHOWN

MERGED = 20
EQUAL = "import numpy as np\ndef f(x):\n    y = x\n" + "    y = y + np.exp(x)\n" * MERGED + "    return y\n"


def result_of(path, *arguments, source=None):
    done = warm.run("compile", path, "--quiet", "--json", "-", *arguments, input=(source or "").encode())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbers(result):
    for kernel in result["kernels"]:
        for stage in kernel["stages"]:
            for entry in [*stage["lines"], *stage.get("remarks", [])]:
                if "src" in entry:
                    yield entry["src"]


@pytest.mark.parametrize("example", ["08_attention", "12_decoder_layer", "13_attention_loop"])
def test_each_file_place_and_source_is_reported_once_and_used(example):
    result = result_of(str(ROOT / f"explorer/examples/{example}.py"))
    for table in ("files", "places", "sources"):
        texts = [json.dumps(v) for v in result[table]]
        assert texts and len(set(texts)) == len(texts), table
    assert set(numbers(result)) == set(range(len(result["sources"])))
    used = {p for s in result["sources"] for p in s["places"]}
    used |= {result["places"][p][6] for p in used} | {p[6] for p in result["places"]}
    used |= {n for p in result["places"] for n in [*p, []][7]}  # the headers of loops
    assert used - {-1} == set(range(len(result["places"])))
    for k, (file, line, _, _, _, _, caller, *_) in enumerate(result["places"]):
        assert line > 0 and file in range(len(result["files"])) and -1 <= caller < k
    assert all(1 <= len(s["places"]) <= SHOWN for s in result["sources"])


def test_a_merged_operation_lists_its_first_places_and_counts_the_others():
    result = result_of("-", "--input", "x=128x128:f32", source=EQUAL)
    found = []
    for stage in result["kernels"][0]["stages"]:
        if stage["name"] != "trace" and stage["dialect"] != "nisa":
            found += [result["sources"][e["src"]] for t, e in zip(stage["text"].split("\n"), stage["lines"]) if "exp" in t and "src" in e]
    merged = [s for s in found if len(s["places"]) > 1]
    assert len({json.dumps(s) for s in merged}) == 1, "passes keep the number"
    places = [result["places"][p] for p in merged[0]["places"]]
    assert [p[1] for p in places] == list(range(4, 4 + SHOWN)) and merged[0]["more"] == MERGED - SHOWN
