"""The table of rules, as compiler/base/rule.def has it."""
import re

from support.paths import ROOT

TEXT = (ROOT / "compiler/base/rule.def").read_text()
TABLE = re.findall(r'^RULE\(\w+, "([\w-]+)", "([\w-]+)"', TEXT, re.M)  # names and passes
# why the rule has no other choice; "" if it chooses
FORCED = dict(zip((name for name, _ in TABLE), re.findall(r'"([^"]*)",\s+"[\w-]*"\)$', TEXT, re.M), strict=True))


def is_priced(remark):
    """It has its cost and that of a rejected choice."""
    return "cost" in remark and any("cost" in x for x in remark.get("rejected", []))


def figure(cost):
    return float(re.search(r"^nothing|[\d.]+", cost).group(0).replace("nothing", "0"))
