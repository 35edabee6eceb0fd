"""The knobs that remarks offer, and the page's own code that writes them into a source."""
import json
import os
import pathlib
import subprocess
import tempfile

from support import source_map
from support.paths import BUILD, ROOT


class Writer:
    """Runs web/src/editor/writeknob.ts."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.script = folder / "writeknob.mjs"
        esbuild = ROOT / "web/node_modules/.bin/esbuild"
        subprocess.run([esbuild, ROOT / "tests/browser/writeknob.ts", "--bundle", "--platform=node", "--format=esm",
                        "--log-level=error", f"--outfile={self.script}"], check=True, timeout=120)
        node = pathlib.Path(os.environ.get("VENV", BUILD / "venv")) / "bin/node"
        self.node = node if node.exists() else "node"

    def write(self, requests: list[dict]) -> list[dict]:
        """For each {text, range, wanted}: {text, what}, or {why} if it cannot be written."""
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.folder, delete=False) as file:
            json.dump(requests, file)
        path = file.name
        done = subprocess.run([self.node, self.script, path], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def remarks_of(result: dict):
    """(kernel's name, remark) of every remark."""
    return [(k["name"], r) for k in result["kernels"] for s in k["stages"] for r in s.get("remarks", [])]


def offers(result: dict) -> list[dict]:
    """Each knob with each value that it is offered for, once for each expression."""
    found, seen = [], set()
    for kernel, remark in remarks_of(result):
        knob = remark.get("knob")
        if not knob or not remark.get("src"):
            continue
        place = {k: remark["src"][0][k] for k in ("line", "col", "end_line", "end_col", "file")}
        for value in knob["offers"]:
            one = json.dumps([place, knob["call"], knob["argument"], value], sort_keys=True)
            if one in seen:
                continue
            seen.add(one)
            wanted = {**{k: knob[k] for k in ("call", "argument", "dims") if k in knob}, "value": value}
            found.append({"kernel": kernel, "rule": remark["rule"], "range": place, "wanted": wanted})
    return found


def obeys(result: dict, offer: dict, text: str, source: str) -> bool:
    """True if a decision about an expression with this text, by the same rule, took the value."""
    taken = [r["knob"]["value"] for kernel, r in remarks_of(result)
             if kernel == offer["kernel"] and r["rule"] == offer["rule"] and r.get("knob") and r.get("src")
             and source_map.text_of(source, r["src"][0]) == text]
    return offer["wanted"]["value"] in taken
