"""Cases of which `make test` runs some, and `make nightly` all."""
import pytest


def few(cases, n, ids=None):
    """The cases of a parametrized test: n of them, spread over the list, and the others with the mark `nightly`."""
    cases = list(cases)
    kept = {i * len(cases) // n for i in range(n)}
    params = []
    for i, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        name = None if ids is None else ids(case) if callable(ids) else str(ids[i])
        params.append(pytest.param(*values, id=name, marks=() if i in kept else pytest.mark.nightly))
    return params
