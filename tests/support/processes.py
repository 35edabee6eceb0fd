"""Processes as the kernel shows them in /proc."""
import os
import pathlib
import re

from support.paths import WORKER


def program(pid):
    """The name of the program that it runs; "" once it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stat(pid):
    """The fields of /proc/PID/stat after the name: state, parent, … (proc(5) counts them from 3)."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def status(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].strip()
    raise KeyError(field)


def alive(pid):
    try:
        return stat(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or before it was read
        return False


def is_asleep(pid):
    """Every thread of it waits for something."""
    try:
        return all(stat(f"{pid}/task/{task}")[0] == "S" for task in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """The processes that it started and that have not ended; none of one that has ended itself."""
    out = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            out += [int(x) for x in task.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return out


def workers_of_this_build():
    """{pid: its parent} of every process that runs our nkx-worker, whoever started it."""
    out = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_bytes().split(b"\0")[0] == bytes(WORKER):
                out[int(place.name)] = int(stat(place.name)[1])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return out


def namespaces(pid, kinds=("pid", "mnt", "ipc", "uts", "user")):
    return tuple(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in kinds)


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def connections(port):
    """Of each connection that a server on this port holds: the bytes that it has sent and the client has not taken."""
    lines = [x.split() for x in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(x[4].split(":")[0], 16) for x in lines if x[1].endswith(f":{port:04X}") and x[3] in ("01", "08")]


def cpu_s(pid):
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
