"""Figures that a test measures, for the table of results: `make nightly` collects them (tests/results.py)."""
import os


def figure(text):
    print(text)
    if "NKX_FIGURES" in os.environ:
        with open(os.environ["NKX_FIGURES"], "a") as f:
            f.write(text + "\n")


def percentile(values, p):
    v = sorted(values)
    return v[min(len(v) - 1, int(len(v) * p))] if v else float("nan")


def auc(a, b):
    """The area under the curve of the best threshold between two samples: 0.5 if they cannot be distinguished, 1 if always."""
    ranked = sorted([(x, 0) for x in a] + [(x, 1) for x in b])
    ranks = sum(i for i, (_, which) in enumerate(ranked, 1) if which == 0)
    u = (ranks - len(a) * (len(a) + 1) / 2) / (len(a) * len(b))
    return max(u, 1 - u)
