"""Cases of which `make test` runs some, and `make nightly` all; tests that need something of the machine."""
import os

import pytest

from support.paths import BUILD


def _others_reach(folder):
    return all(p.stat().st_mode & 0o001 for p in [folder, *folder.parents])


# root's server and its programs run as users of their own, who need the build
needs_reach = pytest.mark.skipif(os.geteuid() == 0 and not _others_reach(BUILD.resolve()),
                                 reason="a folder above this checkout is closed to other users (chmod o+x opens it)")


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
