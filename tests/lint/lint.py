"""Checks what no compiler checks: which folder includes which (layers.txt), circles of files (circles.txt), where SQL is,
HLO attributes that attrs.def does not declare, and a pipeline version that is not that of the sources.

    python3 tests/lint/lint.py [--root DIR] [--build DIR]

Prints a line for each problem; exit status 1 if there is one.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
SQL = re.compile(r'"\s*(?:SELECT\s.*\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+TABLE\s)', re.I)


class Tree:
    """The C files of compiler/ and explorer/, and what each includes."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(str(p.relative_to(root)) for top in ("compiler", "explorer") for p in (root / top).rglob("*")
                            if p.suffix in (".c", ".h", ".def"))
        self.text = {f: (root / f).read_text() for f in self.files}
        known = set(self.files)
        self.ours = {}    # file -> its files of ours
        self.others = {}  # file -> other headers
        for f in self.files:
            names = [m[2] for m in INCLUDE.finditer(self.text[f])]
            found = {n: next((p for p in (f"compiler/{n}", f"explorer/{n}", f"{folder(f)}/{n}") if p in known), None) for n in names}
            self.ours[f] = [p for p in found.values() if p]
            self.others[f] = [n for n, p in found.items() if not p]


def folder(path):
    return path.rsplit("/", 1)[0]


# ---- layers

class Layers:
    def __init__(self, path):
        self.may, self.exceptions, self.only, self.sql = {}, {}, {}, []
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "exception":
                arrow, _, reason = rest.partition(": ")
                a, _, b = arrow.partition(" -> ")
                assert reason.strip(), f"{path.name}: {line}: no reason"
                self.exceptions[a.strip(), b.strip()] = reason
            elif word == "only":
                header, _, folders = rest.partition(":")
                self.only[header] = folders.split()
            elif word == "sql":
                self.sql.append(rest.strip())
            else:
                name, _, folders = line.partition(":")
                self.may[name.strip()] = folders.split()

    def entry(self, file):
        """The entry that a file belongs to; None if there is none."""
        at = folder(file)
        if f"{at}/." in self.may:
            return f"{at}/."
        while at:
            if at in self.may:
                return at
            at = folder(at) if "/" in at else ""
        return None


def check_table(layers):
    for name, may in layers.may.items():
        for other in may:
            if other not in layers.may:
                yield f"layers.txt: {name} may include {other}, which has no line of its own"
    for circle in circles(layers.may):
        yield f"layers.txt: the table has a circle: {' '.join(circle)}"


def check_layers(tree, layers):
    used = set()
    for f in tree.files:
        here = layers.entry(f)
        if here is None:
            yield f"{f}: its folder is not in layers.txt"
            continue
        for other in tree.ours[f]:
            there = layers.entry(other)
            if there in (here, None) or there in layers.may[here]:
                continue
            if (here, there) in layers.exceptions:
                used.add((here, there))
                continue
            yield f"{f}: includes {other}, but {here} may not include {there} (layers.txt)"
        for header in tree.others[f]:
            for start, folders in layers.only.items():
                if header.startswith(start) and not any(f.startswith(d + "/") for d in folders):
                    yield f"{f}: includes {header}, which only {', '.join(folders)} may (layers.txt)"
    for a, b in sorted(set(layers.exceptions) - used):
        yield f"layers.txt: the exception {a} -> {b} is not used any more"


def check_sql(tree, layers):
    for f in tree.files:
        if any(f.startswith(d + "/") for d in layers.sql):
            continue
        code = COMMENT.sub(lambda m: m[1] or "", tree.text[f])
        for m in SQL.finditer(code):
            yield f"{f}: SQL in a string: {m[0].strip()}"


# ---- circles

def circles(edges):
    """The strongly connected components with more than one member, each sorted (Tarjan, without recursion)."""
    index, low, stack, on_stack, out = {}, {}, [], set(), []
    for start in sorted(edges):
        work = [(start, None)] if start not in index else []
        while work:
            node, rest = work.pop()
            if rest is None:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
                rest = iter(sorted(edges.get(node, ())))
            for other in rest:
                if other not in index:
                    work += [(node, rest), (other, None)]
                    break
                if other in on_stack:
                    low[node] = min(low[node], low[other])
            else:
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        out.append(sorted(stack[at:]))
                    on_stack -= set(stack[at:])
                    del stack[at:]
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
    return sorted(out)


def module(file):
    """X.c and X.h are one; a table (X.def) is included by what uses it and stands alone."""
    return file if file.endswith(".def") else file.rsplit(".", 1)[0]


def check_circles(tree, path):
    edges = collections.defaultdict(set)
    for f in tree.files:
        edges[module(f)] |= {module(o) for o in tree.ours[f]} - {module(f)}
    meant = [sorted(line.partition(":")[0].split()) for line in path.read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    found = circles(edges)
    yield from (f"a circle of files that is not in circles.txt: {' '.join(c)}" for c in found if c not in meant)
    yield from (f"circles.txt: there is no such circle any more: {' '.join(c)}" for c in meant if c not in found)


# ---- names and versions

def check_attributes(tree):
    """Every member of struct hlo_attrs that the HLO code names is declared in compiler/hlo/attrs.def."""
    declared = tree.text["compiler/hlo/attrs.def"]
    known = set(re.findall(r"\w+", COMMENT.sub(lambda m: m[1] or "", declared)))
    for f in tree.files:
        if f.startswith("compiler/hlo/") and f.endswith(".c"):
            for name in sorted(set(re.findall(r"->attrs->(\w+)", tree.text[f])) - known):
                yield f"{f}: the attribute {name} is not declared in compiler/hlo/attrs.def"


def check_version(root, build):
    """What the build has compiled in is the version of the sources."""
    made = build / "gen/version.h"
    if not made.exists():
        return
    now = subprocess.run([root / "compiler/driver/version.sh"], capture_output=True, text=True, check=True).stdout.strip()
    has = re.search(r'#define NKX_PIPELINE "([^"]*)"', made.read_text())
    if not has or has[1] != now:
        yield f"{made}: the pipeline's version is {has[1] if has else 'missing'}, but that of the sources is {now}"
    release = (root / "VERSION").read_text().strip()
    if f'#define NKX_RELEASE "{release}"' not in made.read_text():
        yield f"{made}: the release is not that of VERSION, {release}"


def problems(root, build, tables=None):
    tables = tables or root / "tests/lint"
    tree, layers = Tree(root), Layers(tables / "layers.txt")
    yield from check_table(layers)
    yield from check_layers(tree, layers)
    yield from check_sql(tree, layers)
    yield from check_circles(tree, tables / "circles.txt")
    yield from check_attributes(tree)
    yield from check_version(root, build)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path, default=HERE.parents[1])
    args.add_argument("--build", type=pathlib.Path)
    args = args.parse_args()
    found = list(problems(args.root, args.build or args.root / os.environ.get("BUILD", "build")))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
