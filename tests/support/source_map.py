"""The maps of a stage: its operations, the ids they have, and the Python that they come from."""


def expanded(result):
    """The result with places instead of numbers: each "src" is a list of ranges with "depth", 0 for a place itself, 1 for its
    caller and so on; another 0 begins the next place.  Lines with the same source share one list."""

    def chain(number):
        depth = 0
        while number >= 0:
            file, line, col, end_line, end_col, fn, caller, *_ = result["places"][number]
            assert caller < number
            known = {"fn": fn} if fn else {}
            yield {"file": result["files"][file], "line": line, "col": col, "end_line": end_line, "end_col": end_col, **known, "depth": depth}
            number, depth = caller, depth + 1

    lists = [[r for place in source["places"] for r in chain(place)] for source in result["sources"]]
    for stage in (s for kernel in result["kernels"] for s in kernel["stages"]):
        for entry in [*stage["lines"], *stage.get("remarks", [])]:
            if "src" in entry:
                entry["src"] = lists[entry["src"]]
    return result


def text_of(source, r):
    """The source text of a range."""
    lines = source.split("\n")
    if r["line"] == r["end_line"]:
        return lines[r["line"] - 1][r["col"] - 1 : r["end_col"] - 1]
    inner = lines[r["line"] : r["end_line"] - 1]
    return "\n".join([lines[r["line"] - 1][r["col"] - 1 :], *inner, lines[r["end_line"] - 1][: r["end_col"] - 1]])


def operations(stage):
    """(line text, entry) of every line that computes or moves data; what holds a program together needs no place."""
    for text, entry in zip(stage["text"].split("\n"), stage["lines"]):
        body = text.strip()
        if "op" in entry and not body.startswith(("module", "func.func", "return", "linalg.yield", "scf.yield", "nisa.program", "nisa.queue", "}")):
            yield body, entry


def unmapped(stage):
    return [body for body, entry in operations(stage) if not entry.get("src")]


def mapped_share(stage):
    all_ops = list(operations(stage))
    if stage["dialect"] == "hlo":  # parameters and the root stand for the signature and the return
        all_ops = [(b, e) for b, e in all_ops if " parameter(" not in b and not b.startswith("ROOT ")]
    return 1.0 if not all_ops else 1 - sum(not e.get("src") for _, e in all_ops) / len(all_ops)


def all_ids(stage):
    ids = {e["op"] for e in stage["lines"] if "op" in e}
    if stage["dialect"] != "hlo":  # operations of regions that are not printed have ids too
        ids |= set(range(max(ids, default=-1) + 1))
        ids |= set(range(len(ids), len(ids) + 4096))
    return ids
