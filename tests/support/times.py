"""The kernels of tests/bench/times: their simulated times, and the file that has the times they had.

    PYTHONPATH=tests python3 -m support.times [-k WORD]… [--write [--because "WHY"]]

Prints the time of each kernel beside the one in times.txt.  --write notes times that are shorter and kernels that are new; it
notes a longer time only with a reason, which stands in the file from then on.  It takes kernels off the list of those that use
one partition when they no longer do.
"""
import argparse
import re
import sys

from support import timing
from support.paths import TESTS

FOLDER = TESTS / "bench/times"
GOLDEN, NARROW = FOLDER / "times.txt", FOLDER / "narrow.txt"
SLOWER = 1.03
SHARE = 0.1  # of the instructions, on one partition
FIELDS = sorted(p.stem for p in FOLDER.glob("*.py"))


def golden():
    """name -> (microseconds, what stands behind it)."""
    lines = (re.fullmatch(r"(\S+) +([\d.]+)( +#.*)?", x) for x in GOLDEN.read_text().splitlines() if x and x[0] != "#")
    return {m[1]: (float(m[2]), (m[3] or "").strip()) for m in lines}


def narrow():
    return [x for x in NARROW.read_text().splitlines() if x and x[0] != "#"]


def is_explained(kernel):
    """A remark says why the kernel uses one partition."""
    return any(re.search(r"\b1 of \d+ partitions", r["text"]) for s in kernel["stages"] for r in s.get("remarks", []))


def field(name):
    """Of each kernel of a file: its name, what was measured, and whether it may use one partition."""
    kernels = timing.compiled(FOLDER / f"{name}.py")
    for kernel, row in zip(kernels, timing.rows([timing.last_text(k) for k in kernels]), strict=True):
        yield f"{name}.{kernel['name']}", row, timing.share_on_one_partition(row) <= SHARE or is_explained(kernel)


def write_file(path, lines):
    """Replaces what follows the comments at the top."""
    head = [x for x in path.read_text().splitlines() if x.startswith("#")]
    path.write_text("\n".join([*head, *lines]) + "\n")


def noted(old, new, because):
    """What the file says of a kernel after this run: (microseconds, comment)."""
    if old is None or new <= old[0]:
        return new, ""
    return (new, f"# {because}") if because and new > SLOWER * old[0] else old


def main():
    args = argparse.ArgumentParser()
    args.add_argument("-k", action="append", default=[])
    args.add_argument("--write", action="store_true")
    args.add_argument("--because")
    args = args.parse_args()
    known, exempt, slower = golden(), set(narrow()), 0
    for name in FIELDS:
        if args.k and not any(k in name for k in args.k):
            continue
        for kernel, row, is_wide in field(name):
            old = known.get(kernel)
            was = "new" if old is None else f"{row['us'] / old[0]:7.3f}"
            slower += old is not None and row["us"] > SLOWER * old[0]
            print(f"{kernel:36} {row['us']:10.1f} us {was:>8} {timing.share_on_one_partition(row):7.1%} on one partition"
                  f"{'' if is_wide else ', without a remark'}", flush=True)
            known[kernel] = noted(old, row["us"], args.because)
            if is_wide:
                exempt.discard(kernel)
    if args.write:
        write_file(GOLDEN, [f"{k:36} {us:.3f}{' ' * bool(why)}{why}" for k, (us, why) in sorted(known.items())])
        write_file(NARROW, sorted(exempt))
    sys.exit(1 if slower and not (args.write and args.because) else 0)


if __name__ == "__main__":
    main()
