"""`if __name__ == "__main__":` of a source that is executed as a module."""
import ast


def _is_guard(node):
    if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and len(node.test.comparators) == 1
            and isinstance(node.test.ops[0], ast.Eq)):
        return False
    sides = (node.test.left, node.test.comparators[0])
    return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
        isinstance(s, ast.Constant) and s.value == "__main__" for s in sides)


def guarded(source, filename):
    """The code of the blocks that only a program runs, or None."""
    tree = ast.parse(source, filename)
    tree.body = [node for node in tree.body if _is_guard(node)]
    return compile(tree, filename, "exec") if tree.body else None
