"""Builds and restarts the server whenever a source changes, until Ctrl-C.

    python3 dev/watch.py [--port PORT] [--build DIR]

It looks at the sources' times twice a second, which works on every file system.  The server keeps its port through a
restart (SIGHUP), so a page that is open only has to be loaded again.
"""
import argparse
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = {".c", ".h", ".def", ".irdl", ".proto", ".py", ".json", ".sql", ".ts", ".css", ".html", ".mjs", ".svg"}
LOOK_EVERY_S = 0.5


def state(root=ROOT):
    """{source: time of its last change}"""
    places = [root / "Makefile", root / "VERSION"]
    for top in ("compiler", "explorer", "web/src", "web/public"):
        places += (p for p in (root / top).rglob("*") if p.suffix in SOURCES)
    places += (root / "web").glob("*.*")
    found = {}
    for p in places:
        try:
            found[str(p)] = p.stat().st_mtime_ns
        except FileNotFoundError:  # an editor replaces it at this moment
            pass
    return found


class Server:
    def __init__(self, build, port):
        self.command = [ROOT / build / "bin/nkx", "serve", "--port", str(port), "--confine", "as-root"]  # a checkout may lie below /root
        self.process = None

    def restart(self):
        """Starts it, or asks it to start its program anew with the same port."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)
        else:
            self.process = subprocess.Popen(self.command)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def build(directory):
    done = subprocess.run(["make", "--no-print-directory", f"BUILD={directory}", "build"], cwd=ROOT)
    return done.returncode == 0


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--port", type=int, default=10240)
    args.add_argument("--build", default="build")
    args = args.parse_args()
    server, seen = Server(args.build, args.port), None
    try:
        while True:
            now = state()
            if now != seen:
                seen = now
                if build(args.build):
                    server.restart()
                print("watching for changes", flush=True)
            time.sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


if __name__ == "__main__":
    main()
