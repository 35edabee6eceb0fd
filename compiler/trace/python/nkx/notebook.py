"""`%%nkx`: compiles a cell's kernels in a notebook, and shows stages, check and timeline.

The result is HTML without scripts, whose texts and pictures are all in it, so that it is the same in an exported notebook. The program
`nkx` compiles in a process of its own.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from html import escape

WIDTH, LANE, NAMES = 900, 16, 120  # of the timeline, in pixels
COLORS = {"tensor": "#7c3aed", "vector": "#0f766e", "scalar": "#b45309", "gpsimd": "#be185d", "sync": "#475569"}


# ---- compiling


def program(named=None):
    """The program nkx: as it is named, $NKX, of the tree that this package was built in, of the wheel, or in PATH."""
    here = pathlib.Path(__file__).resolve()
    own = next((str(p) for p in (here.parents[2] / "bin" / "nkx", here.parent / "bin" / "nkx") if p.is_file()), None)
    found = named or os.environ.get("NKX") or own or shutil.which("nkx")
    if found is None:
        raise RuntimeError("%%nkx needs the program nkx: put it into PATH, or name it in $NKX or with --nkx")
    return found


def site_folder():
    """Where NumPy is, which the program imports, too."""
    import numpy
    return str(pathlib.Path(numpy.__file__).parents[1])


def parser():
    p = argparse.ArgumentParser(prog="%%nkx", description="Compiles the kernels of the cell; shows their stages, the check and the timeline.")
    p.add_argument("--target", help="trn1, trn2 or trn3")
    p.add_argument("--kernel", help="only the kernel of this name")
    p.add_argument("--input", action="append", default=[], metavar="NAME=SHAPE:DTYPE", help="the shape of a parameter; repeatable")
    p.add_argument("--pipeline", action="append", default=[], help="default, reference, or changes, as for nkx compile")
    p.add_argument("--no-check", action="store_true", help="do not compare the stages with NumPy")
    p.add_argument("--no-run", action="store_true", help="do not run it on the simulated machine")
    p.add_argument("--lines", type=int, default=400, help="at most so many lines of each stage (400)")
    p.add_argument("--nkx", help="the program")
    return p


def compile_cell(options, source):
    """The result object of the API, and the timeline of each kernel that was run, by its number."""
    with tempfile.TemporaryDirectory(prefix="nkx-cell-") as folder:
        out = pathlib.Path(folder)
        command = [program(options.nkx), "compile", "-", "--language", "nkipy", "--quiet", "--json", str(out / "result.json"), "--dump-dir", str(out)]
        for name in ("target", "kernel"):
            if getattr(options, name):
                command += [f"--{name}", getattr(options, name)]
        for name in ("input", "pipeline"):
            for value in getattr(options, name):
                command += [f"--{name}", value]
        command += [] if options.no_check else ["--check"]
        command += [] if options.no_run else ["--simulate"]
        done = subprocess.run(command, input=source, text=True, capture_output=True, env={"NKX_SITE_DIR": site_folder(), **os.environ})
        if not (out / "result.json").exists():
            raise RuntimeError(done.stderr.strip() or f"nkx ended with status {done.returncode}")
        result = json.loads((out / "result.json").read_text())
        timelines = {i: json.loads(f.read_text()) for i in range(len(result["kernels"])) if (f := out / f"kernel{i}" / "executions.json").exists()}
        return result, timelines


# ---- the timeline


def executions(timeline):
    """(lane, start, length, is critical) of every execution, in picoseconds (compiler/sim/report.h)."""
    for page in timeline["pages"]:
        at = page["from_ps"]
        for gap, length, tag in zip(page["gap"], page["length"], page["tag"]):
            start, size = at + gap, timeline["lengths"][length]
            yield page["lane"], start, size, bool(timeline["tags"][tag].get("critical"))
            at = start + size


def bars(found, scale):
    """Merges what lies closer than half a pixel: [from, to] in pixels, in order."""
    merged = []
    for start, size in sorted(found):
        a, b = start * scale, max((start + size) * scale, start * scale + 0.5)
        if merged and a - merged[-1][1] < 0.5:
            merged[-1][1] = max(merged[-1][1], b)
        else:
            merged.append([a, b])
    return merged


def path_of(found, scale, top, height):
    return "".join(f"M{NAMES + a:.1f} {top}h{b - a:.1f}v{height}h{a - b:.1f}z" for a, b in bars(found, scale))


def draw(timeline):
    """The timeline as SVG: a row for each engine and queue, a darker line below what is on the critical path."""
    lanes, total = timeline["lanes"], max(timeline["total_ps"], 1)
    scale, height = (WIDTH - NAMES) / total, LANE * len(timeline["lanes"]) + 18
    all_of, critical = [[] for _ in lanes], [[] for _ in lanes]
    for lane, start, size, is_critical in executions(timeline):
        all_of[lane].append((start, size))
        if is_critical:
            critical[lane].append((start, size))
    rows = []
    for i, lane in enumerate(lanes):
        top = i * LANE
        color = COLORS.get(lane.get("engine", ""), "#2563eb")
        rows.append(f'<text x="{NAMES - 6}" y="{top + 12}" text-anchor="end" font-size="11" fill="currentColor">{escape(lane["name"])}</text>'
                    f'<path fill="{color}" d="{path_of(all_of[i], scale, top + 3, LANE - 7)}"/>'
                    f'<path fill="#dc2626" d="{path_of(critical[i], scale, top + LANE - 3, 2)}"/>')
    axis = "".join(f'<text x="{NAMES + (WIDTH - NAMES) * k / 4:.0f}" y="{height - 4}" text-anchor="{("start", "middle", "middle", "middle", "end")[k]}" font-size="10" '
                   f'fill="currentColor">{total * k / 4e6:.3g} µs</text>' for k in range(5))
    return (f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="Timeline of engines and queues" '
            f'style="max-width:100%">{"".join(rows)}{axis}</svg>')


# ---- the page


def diagnostics(result):
    items = []
    for d in result["diagnostics"]:
        r = d.get("range")
        place = f"{r['file']}:{r['line']}:{r['col']}: " if r else ""
        color = {"error": "#b91c1c", "warning": "#b45309"}.get(d["severity"], "inherit")
        hint = f"<br>hint: {escape(d['hint'])}" if d.get("hint") else ""
        items.append(f'<li style="color:{color}">{escape(place)}{escape(d["severity"])}: {escape(d["message"])} [{escape(d["code"])}]{hint}</li>')
    return f"<ul>{''.join(items)}</ul>" if items else ""


def check_of(kernel):
    """What the check says in a sentence; None if there was none."""
    checks = [(s, s["check"]) for s in kernel["stages"] if "check" in s]
    failed = [(s, c) for s, c in checks if c["status"] == "fail"]
    if not checks:
        return None
    if failed:
        return f"check: {len(failed)} of {len(checks)} stages differ from NumPy, first {failed[0][0]['name']} (stage {failed[0][0]['index']})"
    skipped = sum(c["status"] == "skipped" for _, c in checks)
    return f"check: {len(checks) - skipped} stages agree with NumPy" + (f", {skipped} were not run" if skipped else "")


def stage(s, most):
    mark = {"pass": "✓", "fail": "✗", "skipped": "–"}.get(s.get("check", {}).get("status"), "")
    count = sum(s["op_counts"].values())
    head = f'{s["index"]} <b>{escape(s["name"])}</b> {escape(s["dialect"])}, {count} operations {mark}'
    if not s["changed"]:
        return f'<div style="opacity:.55;padding-left:1em">{head}</div>'
    lines = s["text"].rstrip("\n").split("\n")
    rest = f"\n… {len(lines) - most} more lines (--lines)" if len(lines) > most else ""
    remarks = "".join(f"<li>{escape(r['text'])}</li>" for r in s.get("remarks", [])[:50])
    if len(s.get("remarks", [])) > 50:
        remarks += f"<li>… and {len(s['remarks']) - 50} more decisions</li>"
    return (f'<details><summary>{head}</summary>{f"<ul>{remarks}</ul>" if remarks else ""}'
            f'<pre style="max-height:30em;overflow:auto;font-size:11px;line-height:1.35">{escape(chr(10).join(lines[:most]) + rest)}</pre></details>')


def figures(kernel):
    """The run in words, dearest reasons first; None if there was none."""
    profile = kernel.get("profile")
    if not profile:
        return None
    advice = "".join(f"<li>{a['cost_us']:.3g} µs: {escape(a['text'])}</li>" for a in profile["advice"][:5])
    return f"<div>simulated time: <b>{profile['total_us']:.4g} µs</b>, bound by {escape(profile['bound'])}</div><ul>{advice}</ul>"


class Report:
    """The result of a cell: `.result` is the result object of the API."""

    def __init__(self, result, timelines, lines):
        self.result, self._timelines, self._lines = result, timelines, lines

    def __repr__(self):
        texts = [f"{d['severity']}: {d['message']} [{d['code']}]" for d in self.result["diagnostics"]]
        for k in self.result["kernels"]:
            time = f", {k['profile']['total_us']:.4g} µs simulated" if k.get("profile") else ""
            texts.append(f"{k['name']}: {len(k['stages'])} stages{time}" + (f"; {check_of(k)}" if check_of(k) else ""))
        return "\n".join(texts)

    def _repr_html_(self):
        parts = [diagnostics(self.result)]
        for i, k in enumerate(self.result["kernels"]):
            parts.append(f'<h4>{escape(k["name"])} on {escape(self.result["target"])}</h4>')
            parts += [f"<div>{escape(check_of(k))}</div>" if check_of(k) else "", figures(k) or ""]
            if i in self._timelines:
                parts.append(draw(self._timelines[i]))
            parts.append(f'<details open><summary>{len(k["stages"])} stages</summary>{"".join(stage(s, self._lines) for s in k["stages"])}</details>')
        return f'<div style="font-family:system-ui,sans-serif;font-size:13px">{"".join(parts)}</div>'


def cell_magic(line, cell):
    """`%%nkx [options]`: see `%%nkx --help`."""
    try:
        options = parser().parse_args(shlex.split(line))
    except SystemExit:
        return None  # argparse has said what is wrong
    return Report(*compile_cell(options, cell), options.lines)
