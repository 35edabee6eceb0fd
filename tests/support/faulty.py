"""A proxy before an S3 store that answers as such stores do on their bad days: .how says how, and may be changed at any time.

    with Faulty(moto.port) as faulty:
        Server(*moto.flags(port=faulty.port))
        faulty.how = "500"
"""
import http.client
import http.server
import threading
import time

HOWS = ("well", "late", "500", "SlowDown", "cut", "dribbled", "closed")
LATE_S = 4  # longer than a look-up waits


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _forward(self):
        c = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=30)
        c.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                c.putheader(name, value)
        c.endheaders(self.body)
        response = c.getresponse()
        answer = response.status, response.read(), {n: v for n, v in response.getheaders() if n.lower() not in ("content-length", "connection", "transfer-encoding")}
        c.close()
        return answer

    def _fail(self, status, code):
        self._send(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode(), {"Content-Type": "application/xml"})

    def _head(self, status, n, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(n))
        self.end_headers()

    def _send(self, status, body, headers):
        self._head(status, len(body), headers)
        self.wfile.write(body)

    def _answer(self):
        how = self.server.how
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, how))
        if how == "closed":
            self.close_connection = True
        elif how == "500":
            self._fail(500, "InternalError")
        elif how == "SlowDown":
            self._fail(503, "SlowDown")
        elif how == "late":
            time.sleep(LATE_S)
            self._send(*self._forward())
        else:
            status, body, headers = self._forward()
            if how == "well" or not body:
                return self._send(status, body, headers)
            self._head(status, len(body), headers)
            for i in range(0, len(body) // 2, 16):
                self.wfile.write(body[i:i + 16])
                if how == "dribbled":
                    time.sleep(0.2)
            self.close_connection = True

    do_GET = do_PUT = do_DELETE = _answer

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # the server has lost patience

    def log_message(self, *_):
        pass


class Faulty:
    def __init__(self, behind):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.behind, self.server.how, self.server.seen = behind, "well", []
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def how(self):
        return self.server.how

    @how.setter
    def how(self, how):
        assert how in HOWS
        self.server.how = how

    def met(self, how):
        """The methods that were answered in this way."""
        return {method for method, h in list(self.server.seen) if h == how}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
