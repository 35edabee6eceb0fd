"""What the service says that operations become (explorer/api/ops.json) is what they become.

    NKX_GOLDEN=write pytest tests/conformance/test_oplist.py        writes it anew
"""
import json

from support import golden, oplist
from support.paths import ROOT

FILE = ROOT / "explorer/api/ops.json"


def test_the_list_of_operations_is_true():
    golden.check(FILE, oplist.document())


def test_every_operation_becomes_something():
    ops = json.loads(FILE.read_text())["ops"]
    assert [o["name"] for o in ops if not o["hlo"] and o["kind"] not in ("shape", "creation")] == []
    assert len({n for o in ops for n in o["numpy"]}) == sum(len(o["numpy"]) for o in ops)
