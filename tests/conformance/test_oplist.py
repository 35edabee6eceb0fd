"""What the service says that operations become is what they become."""
import json

from support import oplist


def test_the_list_of_operations_is_true():
    said, true = oplist.FILE.read_text(), oplist.document()
    assert json.loads(said) == json.loads(true), "PYTHONPATH=tests python3 -m support.oplist --update"


def test_every_operation_becomes_something():
    ops = json.loads(oplist.FILE.read_text())["ops"]
    assert [o["name"] for o in ops if not o["hlo"] and o["kind"] not in ("shape", "creation")] == []
    assert len({n for o in ops for n in o["numpy"]}) == sum(len(o["numpy"]) for o in ops)
