"""The Markdown pages name what exists: files, headings, make targets, and options of nkx."""
import re
import shlex
import subprocess

import pytest

from support import markdown
from support.paths import NKX, ROOT

PAGES = markdown.files()
IDS = [str(p.relative_to(ROOT)) for p in PAGES]
FOLDERS = r"(?:compiler|explorer|web|tests|docs|docker|dev)"
MADE = ("build/",)  # what only a build has


def every_page(function):
    return pytest.mark.parametrize("page", PAGES, ids=IDS)(function)


@every_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for target in markdown.links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{target} is not there"
        assert not anchor or anchor in markdown.anchors(file.read_text()), f"{target}: there is no such heading"


@every_page
def test_every_path_of_the_tree_that_is_named_exists(page):
    text = markdown.FENCE.sub("", page.read_text())
    new = {markdown.place(b.before)[1] for b in markdown.blocks(page.read_text()) if b.before.startswith("A new file")}
    for name in re.findall(rf"`({FOLDERS}/[^`\s]*)`", text):
        if name in new or "NAME" in name:
            continue
        assert list(ROOT.glob(name.rstrip("/"))), f"`{name}` is not there"
    for name in re.findall(r"`([\w*]+\.(?:c|h|def))`", text):
        ours = any(True for top in ("compiler", "explorer", "tests") for _ in (ROOT / top).rglob(name))
        assert ours or name == "Python.h", f"there is no {name}"


# ---- commands


def targets():
    """The targets of the Makefile that have a name of their own."""
    text = (ROOT / "Makefile").read_text()
    phony = " ".join(re.findall(r"^\.PHONY:(.*)$", text, re.M)).split()
    suites = re.search(r"SUITES: only these, one after another \((.*?);", (ROOT / "tests/run.sh").read_text(), re.S)[1]
    return {*phony, *re.findall(r"^([a-z][\w-]*):", text, re.M), *(f"test-{s}" for s in re.sub(r"[^\w ]", " ", suites).split())}


def options(command):
    """The options that `nkx command --help` lists; the passes, for opt."""
    below = {"runner": ([], ["token"], ["run"])}.get(command, ([],))
    text = "".join(subprocess.run([NKX, command, *b, "--help"], capture_output=True, text=True).stdout for b in below)
    found = set(re.findall(r"--[a-z][a-z-]*", text)) | {"--help"}
    if command == "opt":
        stages = (ROOT / "compiler/driver/stages.def").read_text()
        found |= {f"--{n}" for n in re.findall(r'^STAGE(?:_OWN)?\(\w+, "([^"]+)"', stages, re.M)}
    return found


def commands(script):
    """The words of each command of a shell script; here-documents are data."""
    script = re.sub(r"<<'?(\w+)'?(.*?)\n.*?\n\1\n", r"\2\n", script.replace("\\\n", " "), flags=re.S)
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    for word in lexer:
        if set(word) <= set(";&|"):
            yield words
            words = []
        elif words or not re.match(r"[A-Z_]+=", word):
            words.append(word)
    yield words


def check_command(words, known):
    if not words:
        return
    if words[0] == "make":
        for word in words[1:]:
            if "=" not in word and not word.startswith(("-", "…", *MADE)):
                assert word in known, f"make has no target {word}"
    elif words[0].split("/")[-1] == "nkx" and len(words) > 1 and not words[1].startswith("-"):
        assert words[1] in ("serve", "compile", "run", "resume", "tune", "shrink", "diff", "opt", "reproduce", "nki", "store", "doctor", "doc", "neff", "runner", "token", "lesson", "why", "steps", "mcp", "lsp"), f"nkx has no command {words[1]}"
        for word in words[2:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in options(words[1]), f"nkx {words[1]} has no option {word}"
    elif words[0].startswith(("dev/", "docker/", "tests/", "compiler/", "explorer/")):
        assert (ROOT / words[0]).exists(), f"{words[0]} is not there"


@every_page
def test_every_command_names_targets_and_options_that_exist(page):
    known = targets()
    for block in markdown.blocks(page.read_text()):
        if block.language == "sh":
            script = re.sub(r"(^|\s)#.*", "", block.text)
            for words in commands(script):
                check_command(words, known)


@every_page
def test_every_make_target_and_option_in_the_text_exists(page):
    known, text = targets(), markdown.FENCE.sub("", page.read_text())
    for inline in re.findall(r"`([A-Z_a-z]+=\S+ )*(make [^`]+)`", text):
        check_command(inline[1].split(), known)
    editors = re.findall(r'{"(--[a-z-]+)"', (ROOT / "explorer/ce/args.c").read_text())  # of Compiler Explorer's clients
    cells = re.findall(r'add_argument\("(--[a-z-]+)"', (ROOT / "compiler/trace/python/nkx/notebook.py").read_text())
    everything = {"--version", "--NAME", *editors, *cells}.union(*map(options, ("serve", "compile", "run", "tune", "shrink", "diff", "opt", "store", "doc", "neff", "runner", "token", "mcp", "lsp")))
    for option in re.findall(r"`(--[a-z][a-z-]*)[^`]*`", text):
        assert option in everything, option


def test_a_wrong_target_and_a_wrong_option_are_noticed():
    for script in ("make no-such-target", "X=1 make quick binarie", "build/bin/nkx serve --no-such-flag 1", "nkx opt --no-such-pass x.mlir"):
        with pytest.raises(AssertionError):
            for words in commands(script):
                check_command(words, targets())
