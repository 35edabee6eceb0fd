"""Imports between the files of one request, which exist only in memory.

Their folders are entries of sys.path that begin with MARK, and a path hook gives CPython's own PathFinder a finder for
such entries.  So packages with and without __init__.py, relative imports, circles and importlib work by CPython's code.

As in CPython a module that is loaded already is what `import` finds: a file called numpy.py hides nothing.
"""
import ast
import importlib.abc
import importlib.machinery
import itertools
import keyword
import linecache
import os
import posixpath
import re
import sys
import types

from nkx import missing, rounds

MARK = "nkx-files:"
_NKI = re.compile("nki(?!gen|py)")  # as names_nki in compiler/trace/program.c


class _Loader(importlib.abc.SourceLoader):
    def __init__(self, files, path):
        self._files, self._path, self._code = files, path, None

    def create_module(self, spec):
        """A module whose kernels go on after names that are not defined, if it may have kernels."""
        text, module = self._files[self._path], types.ModuleType(spec.name)
        if _NKI.search(text):
            try:
                self._code = super().get_code(spec.name)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None  # raised again when it is executed
            from nkx import nki_unknown
            vars(module)["__builtins__"] = nki_unknown.builtins_of(self._code, text, vars(module))
        return module

    def get_code(self, fullname):
        return self._code or super().get_code(fullname)

    def get_filename(self, fullname):
        return self._path

    def get_data(self, path):
        if path not in self._files:
            raise FileNotFoundError(path)
        return self._files[path].encode()

    def source_to_code(self, data, path):
        text = self._files[self._path]
        return rounds.compiled(text, path) or compile(text, path, "exec", dont_inherit=True)


def _spec(fullname, files, path):
    is_package = path.endswith("/__init__.py")
    spec = importlib.machinery.ModuleSpec(fullname, _Loader(files, path), origin=path, is_package=is_package)
    spec.has_location = True
    if is_package:
        spec.submodule_search_locations.append(MARK + posixpath.dirname(path))
    return spec


def _find(files, folder, name):
    """The file of a module in a folder, in CPython's order; None for a folder without __init__.py, and KeyError."""
    base = posixpath.join(folder, name)
    for path in (base + "/__init__.py", base + ".py"):
        if path in files:
            return path
    if any(f.startswith(base + "/") for f in files):
        return None
    raise KeyError(name)


class _Folder:
    """Finds the modules in one folder, as importlib.machinery.FileFinder does on disk."""

    def __init__(self, files, folder):
        self._files, self._folder = files, folder

    def find_spec(self, fullname, target=None):
        try:
            path = _find(self._files, self._folder, fullname.rpartition(".")[2])
        except KeyError:
            return None
        if path is not None:
            return _spec(fullname, self._files, path)
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations.append(MARK + posixpath.join(self._folder, fullname.rpartition(".")[2]))
        return spec


def _is_name(text):
    return text.isidentifier() and not keyword.iskeyword(text)


def _roots(main):
    """Where the search for a module begins: the main file's folder, and the folder that its name is relative to."""
    folder = posixpath.dirname(main)
    return [folder] if not folder or posixpath.isabs(main) or ".." in folder.split("/") else [folder, ""]


def _package(path, roots):
    """The packages around a file, as a list: its folders below the last root that it is in."""
    root = next((r for r in reversed(roots) if not r or path.startswith(r + "/")), "")
    return [p for p in posixpath.dirname(path[len(root):]).split("/") if p not in ("", ".")]


def _main_names(main, files):
    """Names under which other files import the main file: that in its folder, and that in the packages around it."""
    stem, _, suffix = posixpath.basename(main).rpartition(".")
    if suffix != "py" or not _is_name(stem) or stem in sys.modules:
        return ["kernel" if "kernel.py" not in files else "_kernel"]
    package = _package(main, _roots(main))
    return [stem, ".".join([*package, stem])] if package and all(map(_is_name, package)) else [stem]


class Session:
    """The imports of one request, from here to close().  files: pairs of name and text, the main file's first."""

    def __init__(self, files):
        self._files = {name: text.removeprefix("\ufeff") for name, text in files}
        main = files[0][0]
        self._last = next(reversed(sys.modules))  # a copy of the dict would write to every module, a page each in a worker
        self._roots = [MARK + folder for folder in _roots(main)]
        self._missing = missing.Finder(self._files)
        self.hidden = self._missing.names  # see compiler/trace/imports.c
        for name, text in self._files.items():
            linecache.cache[name] = len(text), None, text.splitlines(True), name
        sys.path[:0] = self._roots
        sys.path_hooks.append(self._hook)
        sys.meta_path.append(self._missing)
        self.module = self._main_module(main)

    def _hook(self, path):
        if not path.startswith(MARK):
            raise ImportError(path)
        return _Folder(self._files, path.removeprefix(MARK))

    def _main_module(self, main):
        names = _main_names(main, self._files)
        module = types.ModuleType(names[-1])
        module.__file__, module.__package__ = main, names[-1].rpartition(".")[0]
        module.__loader__ = _Loader(self._files, main)
        for name in names:
            sys.modules[name] = module
        return module

    def close(self):
        """Takes away everything that imports between the files left behind."""
        sys.path[:] = [p for p in sys.path if not str(p).startswith(MARK)]
        sys.path_hooks[:] = [h for h in sys.path_hooks if h != self._hook]
        sys.meta_path[:] = [f for f in sys.meta_path if f is not self._missing]
        for path in [p for p in sys.path_importer_cache if p.startswith(MARK)]:
            del sys.path_importer_cache[path]
        for name in self._files:
            linecache.cache.pop(name, None)
        self._missing.close()
        new = itertools.takewhile(lambda name: name != self._last, reversed(sys.modules))
        for name in [n for n in new if self._is_own(sys.modules[n])]:
            del sys.modules[name]

    def _is_own(self, module):
        spec = getattr(module, "__spec__", None)
        places = [getattr(module, "__file__", None), getattr(spec, "origin", None)]
        folders = getattr(spec, "submodule_search_locations", None)
        folders = getattr(folders, "_path", folders)  # that of a package without __init__.py imports when it is looked at
        return any(p in self._files for p in places if isinstance(p, str)) or any(
            str(p).startswith(MARK) for p in (folders if isinstance(folders, list) else ()))


# ---- the files beside a main file on disk --------------------------------------------------------------------------


def _imported(tree, package):
    """Dotted names of modules that a file may import; package: that of the file, as a list."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name.split(".") for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(package) + 1:
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = base + node.module.split(".") if node.module else base
            yield base
            yield from (base + [a.name] for a in node.names if a.name != "*")


def _read(path):
    try:
        with open(path, encoding="utf-8-sig", newline="") as f:
            return f.read()
    except (OSError, ValueError):
        return None


def _parse(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])  # the tracer says what is wrong with it


def defines(text, name):
    """True if the code of a module, outside of its functions and classes, defines or assigns the name."""
    rest = list(_parse(text.removeprefix("\ufeff")).body)
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            if node.name == name:
                return True
        elif isinstance(node, ast.Name):
            if node.id == name and isinstance(node.ctx, ast.Store):
                return True
        else:
            rest.extend(ast.iter_child_nodes(node))
    return False


def _on_disk(root, dotted):
    """Files that an import of a dotted name reads: the packages on the way, and the module."""
    for n in range(1, len(dotted) + 1):
        base = posixpath.join(root, *dotted[:n])
        init, module = base + "/__init__.py", base + ".py"
        if os.path.isfile(init):
            yield init, dotted[:n]
        elif os.path.isfile(module):
            yield module, dotted[: n - 1]
            return
        elif not os.path.isdir(base):
            return


def beside(main, text, given):
    """Files on disk that a main file imports, in their turn too, as pairs of name and text.

    given: files that are known already, text by name.  A module that is loaded, or that is of Python's standard library, is not
    looked for.  Only what import statements name is found.
    """
    roots, found, known = _roots(main), [], {main, *given}
    rest = [(_parse(text), _package(main, roots)), *((_parse(t), _package(name, roots)) for name, t in given.items())]
    while rest:
        tree, package = rest.pop()
        for dotted in _imported(tree, package):
            if not dotted or dotted[0] in sys.stdlib_module_names or dotted[0] in sys.modules:
                continue
            for path, of in (place for root in roots for place in _on_disk(root, dotted)):
                text = None if path in known else _read(path)
                known.add(path)
                if text is not None:
                    found.append((path, text))
                    rest.append((_parse(text), of))
    return found
