"""The text of MLIR modules."""
import re

from nkx import package

__all__ = ["extract_and_clean_func_from_module"]


def _without(text, pattern):
    """The text without the operations that begin with the pattern, and their regions."""
    kept, depth = [], 0
    for line in text.splitlines(keepends=True):
        if depth or re.match(rf"\s*(%[\w, %]+ = )?\"?({pattern})", line):
            depth += line.count("{") - line.count("}")
            continue
        kept.append(line)
    return "".join(kept)


def extract_and_clean_func_from_module(module, func_name=None):
    """The module as it can run on a processor: with the function of this name (None: all that have a body), and without
    transform scripts, annotations and memory spaces."""
    text = _without(str(module), r"transform\.|nkipy\.(layout|tile_op|fuse_op)")
    text = re.sub(r"(memref<[^<>]*?(?:<[^<>]*>[^<>]*?)*), [1-5] : i32>", r"\1>", text)
    text = re.sub(r"memory_space = [1-5] : i32", "", text).replace(" {}", "")
    if func_name is None:
        return package.Module(text)
    others = [n for n in re.findall(r"func\.func (?:private )?@([\w$.-]+)", text) if n != func_name]
    if not re.search(rf"@{re.escape(func_name)}\(", text):
        raise ValueError(f"the module has no function @{func_name}")
    for other in others:
        if not re.search(rf"call @{re.escape(other)}\(", text):
            text = _without(text, rf"func\.func (?:private )?@{re.escape(other)}\(")
    return package.Module(text)
