"""XLA's CPU does not know NKIPy's custom call AwsNeuronTopK.  Where XLA is the oracle, the call is written as XLA's own
topk, with its positions as unsigned numbers, which is what the call means; everything else stays as it is.
"""
import re

from jaxlib import _hlo

TARGET = b"AwsNeuronTopK"
CALL = re.compile(
    r"(?P<root>ROOT )?(?P<name>%?[\w.-]+) = \((?P<values>\w+\[[\d,]*\]\S*), (?:/\*index=1\*/)?u32(?P<shape>\[[\d,]*\]\S*)\) "
    r"custom-call\((?P<x>[^)]*)\), custom_call_target=\"AwsNeuronTopK\".*?backend_config=\"?(?P<k>\d+).*")


def _topk(m):
    v, shape, name, root = m["values"], m["shape"], m["name"], m["root"] or ""
    return f"""{name}.both = ({v}, s32{shape}) topk({m["x"]}), k={m["k"]}, largest=true
  {name}.values = {v} get-tuple-element({name}.both), index=0
  {name}.signed = s32{shape} get-tuple-element({name}.both), index=1
  {name}.positions = u32{shape} convert({name}.signed)
  {root}{name} = ({v}, u32{shape}) tuple({name}.values, {name}.positions)"""


def expand(proto):
    """The same HloModuleProto, serialized, with every such call expanded."""
    if TARGET not in proto:
        return proto
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = False
    text = _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
    text, n = CALL.subn(_topk, text)
    assert n and TARGET.decode() not in text, text
    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
