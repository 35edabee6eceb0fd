"""Finds the function of a source that its decorators made something else."""
import ast
import types


def lost(namespace, source):
    """(name, what it is now, line, column, end line, end column) of the first decorated top-level function whose name holds no
    function; the place is that of its last-applied decorator, counted from 1 in code points.  None if there is none."""
    lines = source.split("\n")

    def column(line, utf8):
        return len(lines[line - 1].encode()[:utf8].decode(errors="replace")) + 1

    for node in ast.parse(source).body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.decorator_list or node.name not in namespace:
            continue
        value, d = namespace[node.name], node.decorator_list[0]
        if not isinstance(value, types.FunctionType):
            what = "None" if value is None else f"of type {type(value).__name__}"
            return node.name, what, d.lineno, column(d.lineno, d.col_offset), d.end_lineno, column(d.end_lineno, d.end_col_offset)
    return None
