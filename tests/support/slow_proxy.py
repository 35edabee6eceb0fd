"""Stands between the browser and the server and hands on the frames of an answer slowly, or not at all.

The frames are the server's own; only their timing is changed, so that a test can look at the page in between.
"""
import http.server
import select
import socket
import threading
import urllib.error
import urllib.request


class SlowProxy:
    def __init__(self, upstream: str):
        self.upstream = upstream
        self.frames = threading.Semaphore(0)  # frames that may pass
        self.hold = False  # True: frames wait for `let`
        self.cut = False  # True: the connection drops without an answer
        self.aborted = threading.Event()  # the browser gave up on an answer
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, body=None):
                if proxy.cut:
                    self.close_connection = True
                    self.connection.close()
                    return
                headers = {k: v for k, v in self.headers.items() if k.lower() in ("accept", "content-type")}
                request = urllib.request.Request(proxy.upstream + self.path, body, headers, method=self.command)
                try:
                    upstream = urllib.request.urlopen(request, timeout=60)
                except urllib.error.HTTPError as e:
                    upstream = e
                with upstream:
                    self.relay(upstream)

            def relay(self, upstream):
                framed = upstream.headers.get("Content-Type", "").startswith("application/x-ndjson")
                self.send_response(upstream.status)
                for name, value in upstream.headers.items():
                    if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for line in upstream:
                        if framed and proxy.hold and not self.wait():
                            raise BrokenPipeError
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    proxy.aborted.set()
                    self.close_connection = True

            def wait(self) -> bool:
                """Until a frame may pass; False when the browser has gone."""
                for _ in range(600):
                    if not proxy.hold or proxy.frames.acquire(timeout=0.05):
                        return True
                    readable, _, _ = select.select([self.connection], [], [], 0)
                    if readable and self.connection.recv(1, socket.MSG_PEEK) == b"":
                        return False
                return True

            def do_GET(self):
                self.answer()

            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers["Content-Length"])))

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def let(self, n: int) -> None:
        """Lets n frames pass."""
        self.frames.release(n)

    def close(self) -> None:
        self.hold = False
        self.let(1000)
        self.http.shutdown()
        self.http.server_close()
