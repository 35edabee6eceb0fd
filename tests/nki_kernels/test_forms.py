"""Each operand form, type and engine of each call: what the simulated machine computes is what NumPy says."""
import pytest

from support import nki_form_cases as cases
from support.nki_forms import TARGETS, Kernel

FORMS = {"elementwise": list(cases.elementwise())}
CHUNK = 40


def chunks(target):
    for group, forms in FORMS.items():
        mine = [f for f in forms if target in f.targets]
        for k in range(0, len(mine), CHUNK):
            yield pytest.param(target, mine[k:k + CHUNK], id=f"{target} {group} {k // CHUNK}")


@pytest.mark.parametrize("target, forms", [c for target in TARGETS for c in chunks(target)])
def test_each_form_computes_what_numpy_says(target, forms):
    wrong = Kernel(forms).run(target)
    assert not wrong, "\n".join(wrong)
