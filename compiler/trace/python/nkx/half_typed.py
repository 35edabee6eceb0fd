"""A file of NKI kernels that is not valid Python yet: what of it can be analysed.

A block is a statement at the beginning of a line, with its decorators.  A block with a syntax error keeps the statements before the
broken one, or nothing; the text keeps its lines, so that places stay what they are.
"""
import ast
import re

_NKI = re.compile(r"\b(?:from|import)\s+(?:neuronxcc\b|nki\b)")
_FOR_BLOCK = re.compile(r"expected an indented block after .* on line (\d+)")
_BLOCKS_MOST, _CUTS_MOST = 20, 200


def _begins_block(line):
    return bool(line.strip()) and line[0] not in " \t)]}#\\"


def _block(lines, at):
    """[first, end) of the block that line number `at`, from 0, is in; its decorators belong to it."""
    first = at
    while first > 0 and not _begins_block(lines[first]):
        first -= 1
    head = first
    while lines[head].startswith("@") and head + 1 < len(lines):  # `at` is in a decorator
        head += 1
        while head + 1 < len(lines) and not _begins_block(lines[head]):
            head += 1
    while first > 0 and lines[first - 1].startswith("@"):
        first -= 1
    end = max(head, at) + 1
    while end < len(lines) and not _begins_block(lines[end]):
        end += 1
    return first, end


def _parses(lines):
    try:
        ast.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _place(error, lines):
    """The number, from 0, of the line that an error is about."""
    header = _FOR_BLOCK.search(error.msg or "")
    at = int(header[1]) if header else error.lineno or 1
    at = min(max(at, 1), len(lines)) - 1
    while at > 0 and not lines[at].strip():
        at -= 1
    return at


def _kept(lines, first, end, at):
    """The end of what a block keeps: `first` if nothing of it can stand alone."""
    for cut in range(min(at, end - 1), max(first, at - _CUTS_MOST), -1):
        if _parses(lines[first:cut]):
            return cut
    return first


def _is_used(tree, name, first, end):
    """Whether another function or class of the file reads the name that a block binds; True if it binds none that is known."""
    return name is None or any(
        isinstance(n, ast.Name) and n.id == name for s in tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))
        and not first <= s.lineno - 1 < end for n in ast.walk(s))


def _bound(lines, first, end):
    for line in lines[first:end]:
        m = re.match(r"(?:def|class)\s+(\w+)", line)
        if m:
            return m[1]
    return None


def repaired(text):
    """(the text that can be executed, [(first line, last line, whether functions outside use what the block defines), …] of the
    blocks that were cut, lines from 1); None if there is none."""
    if not _NKI.search(text):
        return None
    lines, cuts = text.split("\n"), []
    for _ in range(_BLOCKS_MOST):
        try:
            tree = ast.parse("\n".join(lines))
        except SyntaxError as e:
            at = _place(e, lines)
        except (ValueError, RecursionError, MemoryError):
            return None
        else:
            used = [(first + 1, end, _is_used(tree, name, first, end)) for first, end, name in cuts]
            return ("\n".join(lines), used) if cuts else None
        first, end = _block(lines, at)
        if _parses(lines[first:end]) and first > 0:  # the block before it is not complete
            first, end = _block(lines, _place(SyntaxError("", ("", first, 1, "")), lines))
            at = end - 1
        name, cut = _bound(lines, first, end), _kept(lines, first, end, at)
        if not any(line.strip() for line in lines[cut:end]):
            return None
        lines[cut:end] = [""] * (end - cut)
        cuts.append((first, end, name))
    return None
