"""What a server holds at rest, and what is left once it has ended."""
import os
import pathlib

from support.figures import figure
from support.paths import is_sanitized
from support.processes import children, fds, namespaces, rss_kb, workers_of_this_build
from support.wait import wait_until, wait_until_steady

REST_S = 0.6  # at rest for half a second a server gives memory back (explorer/pool/supervise.c)


def footprint(server):
    """What the server holds at rest, with the zygote that stands by (until it is there, its socket is missing)."""
    wait_until(lambda: len(server.zygotes()) == 2, "the zygote that stands by")
    server.settle()

    def held():
        zygote = server.zygote()
        return {"fds": fds(server.pid), "zygote fds": fds(zygote), "threads": len(os.listdir(f"/proc/{server.pid}/task")),
                "children": len(children(zygote)), "zygotes": len(server.zygotes()), "zygote": zygote,
                "resident KiB": (rss_kb(server.pid), rss_kb(zygote))}
    return wait_until_steady(held, "what the server holds", REST_S)


def assert_nothing_is_left(before, after):
    """Two footprints are the same, except for memory: one per cent of what the server and the zygote use."""
    own, common = before.pop("resident KiB"), after.pop("resident KiB")
    figure(f"resident, KiB, server and zygote: {own} before, {common} after")
    assert after == before
    assert is_sanitized() or all(b <= a + a // 100 for a, b in zip(own, common)), (own, common)


def stop_and_audit(server):
    """R5: at a session's end the children and namespaces that the kernel counts are those the server says it has; once it
    has stopped there are none, nor any process in what was theirs."""
    server.settle()
    family = (1, server.launcher, server.pid)

    def kids():
        found = workers_of_this_build()
        return [p for p, parent in found.items() if found.get(parent) == server.launcher]

    wait_until(lambda: len(kids()) == server.health["idle"], "as many children as the server says it has")
    own = {kid: namespaces(kid) for kid in kids()}
    assert sorted(own) == sorted(server.kids())
    if server.health["level"] in ("A", "B"):
        for of_one_kind in zip(*own.values()):
            assert len(set(of_one_kind)) == len(own), "children share a namespace"
        # the network alone they may share: it is empty, and there is no system call with which to use it
        networks = {names for kid in own for names in namespaces(kid, ["net"])}
        assert networks and os.readlink("/proc/self/ns/net") not in networks
    theirs = {names[0] for names in own.values()} - {os.readlink("/proc/self/ns/pid")}
    assert server.stop() == 0

    def left():
        found = []
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(place / "ns/pid") in theirs:
                    found.append(place.name)
            except OSError:  # it is gone, or not ours to look at
                pass
        return found + [p for p, parent in workers_of_this_build().items() if p in own or parent in family]
    wait_until(lambda: not left(), "no process of the server's to be left")
