"""Finds the function of a source that its decorators made something else, or that the source does not reach."""
import ast
import types

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def lost(namespace, source):
    """(what happened, a hint, line, column, end line, end column) of the first decorated top-level function whose name holds no function, at its
    last-applied decorator, else of the first function in a branch of the source whose name is not defined; places are counted from 1
    in code points.  None if there is none."""
    lines = source.split("\n")

    def column(line, utf8):
        return len(lines[line - 1].encode()[:utf8].decode(errors="replace")) + 1

    body = ast.parse(source).body
    for node in body:
        if not isinstance(node, _FUNCTIONS) or not node.decorator_list or node.name not in namespace:
            continue
        value, d = namespace[node.name], node.decorator_list[0]
        if not isinstance(value, types.FunctionType):
            what = "None" if value is None else f"of type {type(value).__name__}"
            return (f"{node.name} is {what} after this decorator", "a decorator has to return a function", d.lineno, column(d.lineno, d.col_offset),
                    d.end_lineno, column(d.end_lineno, d.end_col_offset))
    for top in body:
        inner = () if isinstance(top, (*_FUNCTIONS, ast.ClassDef)) else ast.walk(top)
        for node in inner:
            if isinstance(node, _FUNCTIONS) and node.name not in namespace:
                at = column(node.lineno, node.col_offset)
                return (f"{node.name} is in a branch that is not executed", "define it outside of the branch", node.lineno, at,
                        node.lineno, at + len("def"))
    return None
