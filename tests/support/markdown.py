"""What the tests read from our Markdown files: links, code blocks, and the steps of docs/adding.md."""
import collections
import re
import subprocess

from support.paths import ROOT

Block = collections.namedtuple("Block", "language text line before")  # before: the paragraph above it
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)


def files():
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / n for n in names]


def blocks(text):
    """Every fenced code block, without the indentation of a list that it is in."""
    for m in FENCE.finditer(text):
        lines = [line.removeprefix(m[1]) for line in m[3].splitlines(keepends=True)]
        before = text[: m.start()].rstrip().rsplit("\n\n", 1)[-1]
        yield Block(m[2], "".join(lines), text.count("\n", 0, m.start()) + 1, before)


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def links(text):
    """The targets of links and pictures."""
    return re.findall(r"\]\(([^()\s]+)\)", without_code(text))


def anchors(text):
    """The names by which a link reaches the headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def sections(text):
    """Heading of level 2 -> its text."""
    parts = re.split(r"^## (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# ---- the steps of a worked example

PLACES = {
    r"A new file, `([^`]+)`:": "new",
    r"At the end of `([^`]+)`:": "end",
    r"In `([^`]+)`, after the line that begins with `([^`]+)`:": "after",
    r"In `([^`]+)`, before the line that begins with `([^`]+)`:": "before",
}


def place(sentence):
    """(where, path, line or None) that a sentence above a block names; None if it names none."""
    for pattern, where in PLACES.items():
        if m := re.fullmatch(pattern, sentence):
            return where, m[1], m[2] if m.re.groups > 1 else None
    return None


def insert(root, block):
    """Applies a block to a tree as the sentence above it says."""
    found = place(block.before)
    assert found, f"line {block.line}: no place is named above the block: {block.before!r}"
    where, path, start = found
    file = root / path
    if where == "new":
        assert not file.exists(), f"{path} exists"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
        return
    lines = file.read_text().splitlines(keepends=True)
    at = len(lines)
    if start:
        hits = [i for i, line in enumerate(lines) if line.strip().startswith(start)]
        assert len(hits) == 1, f"{path} has {len(hits)} lines that begin with {start!r}"
        at = hits[0] + (where == "after")
    lines[at:at] = [block.text]
    file.write_text("".join(lines))
