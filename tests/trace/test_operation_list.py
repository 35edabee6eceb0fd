"""What must be done after an operation was added to the table is said by a test."""
import json

from support.oracles import xla
from support.paths import ROOT

UPDATE = "NKX_GOLDEN=write pytest tests/conformance/test_oplist.py"


def test_the_list_that_the_service_shows_has_every_operation_of_the_table():
    listed = {o["name"]: o for o in json.loads((ROOT / "explorer/api/ops.json").read_text())["ops"]}
    table = {o["name"]: o for o in xla._nkx.operations()}
    missing, stale = [n for n in table if n not in listed], [n for n in listed if n not in table]
    assert not missing, f"explorer/api/ops.json lacks {', '.join(missing)}: {UPDATE}"
    assert not stale, f"explorer/api/ops.json still has {', '.join(stale)}: {UPDATE}"
    for name, o in table.items():
        said = listed[name]
        want = (o["kind"], [f"np.{n}" for n in o["numpy"].split()], o["method"])
        assert (said["kind"], said["numpy"], said.get("method")) == want, f"{name} differs in explorer/api/ops.json: {UPDATE}"
