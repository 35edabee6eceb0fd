"""People together in one kernel, over HTTP: a participant with a stream of its own, which keeps what it was sent."""
import base64
import contextlib
import http.client
import json
import socket
import threading

from support.server import ADD_ONE, FLOAT_INPUT, OURS
from support.wait import wait_until

REQUEST = {"source": ADD_ONE, "inputs": FLOAT_INPUT}


def b64(data):
    return base64.b64encode(data).decode()


class Person:
    """One participant.  Its stream runs on a thread until close()."""

    def __init__(self, server, session, person, token, address=None):
        self.server, self.session, self.person, self.token, self.address = server, session, person, token, address
        self.events, self.last, self.state, self.presences = [], None, None, {}
        self.snapshot, self.updates = None, {}  # updates: by their numbers
        self.is_open = False
        self._connection = self._thread = None

    def send(self, what, body):
        return self.server.request("POST", f"/api/v1/session/{what}/{self.session}", body, {**OURS, "X-Nkx-Session-Token": self.token}, self.address)

    def update(self, *pieces):
        return self.send("updates", {"updates": [b64(p) for p in pieces]})

    def lead(self, act, **fields):
        return self.send("lead", {"act": act, **fields})

    def show(self, **presence):
        return self.send("presence", presence)

    def compact(self, seq, data, **fields):
        return self.send("snapshot", {"seq": seq, "data": b64(data), "request": REQUEST, **fields})

    def follow(self, last=None):
        """Opens the stream; last: the id of the last event that it has."""
        self.close()
        headers = {"X-Nkx-Session-Token": self.token}
        last = self.last if last is None else last
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self._connection = self.server.connect(timeout=60, address=self.address)
        self._connection.request("GET", f"/api/v1/session/events/{self.session}", headers=headers)
        response = self._connection.getresponse()
        if response.status != 200:
            code = json.loads(response.read())["error"]["code"]
            self._connection.close()
            self._connection = None
            return code
        assert response.headers["Content-Type"] == "text/event-stream"
        self.is_open = True
        self._thread = threading.Thread(target=self._read, args=[response], daemon=True)
        self._thread.start()
        return None

    def _read(self, response):
        event = {}
        try:
            for line in response:
                line = line.decode().rstrip("\n")
                if line and not line.startswith(":"):
                    name, value = line.split(": ", 1)
                    event[name] = value
                elif event:
                    self._take(event)
                    event = {}
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.is_open = False

    def _take(self, event):
        kind, data = event["event"], event["data"]
        if kind == "state":
            self.state = json.loads(data)
        elif kind == "snapshot":
            self.last = int(event["id"])
            self.snapshot = (self.last, base64.b64decode(data))
        elif kind == "update":
            self.last = int(event["id"])
            update = json.loads(data)
            self.updates[self.last] = (update["person"], base64.b64decode(update["data"]))
        elif kind == "presence":
            presence = json.loads(data)
            self.presences[presence["person"]] = presence["presence"]
        self.events.append((kind, event.get("id")))

    def close(self):
        if self._connection:
            if self._connection.sock:
                try:
                    self._connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self._connection.close()
            self._thread.join()
            self._connection = None

    def has(self, *texts):
        """Waits until the texts, as bytes, are the updates that it has, in this order."""
        wait_until(lambda: [t for _, (_, t) in sorted(self.updates.items())] == list(texts), f"updates {texts}", 20)

    def sees(self, **fields):
        """Waits until its state has these members."""
        wait_until(lambda: self.state and {k: self.state.get(k) for k in fields} == fields, f"state {fields}", 20)

    def names(self, here=True):
        return [p["name"] for p in self.state["people"] if p["here"] == here] if self.state else []


def begin(server, name="Ann", snapshot=b"\0\0", **fields):
    answer = server.request("POST", "/api/v1/sessions", {"name": name, "snapshot": b64(snapshot), "request": REQUEST, **fields}, OURS)
    assert answer.status == 201, answer.body
    made = answer.json
    assert made["url"] == f"/s/{made['id']}" and made["person"] == 1
    return Person(server, made["id"], 1, made["token"])


def ask_to_join(server, session, name, address=None):
    return server.request("POST", f"/api/v1/session/join/{session}", {"name": name}, OURS, address)


def join(server, session, name="Bob", address=None):
    answer = ask_to_join(server, session, name, address)
    assert answer.status == 200, answer.body
    return Person(server, session, answer.json["person"], answer.json["token"], address)


@contextlib.contextmanager
def two_people(one, other):
    """A leader on one server and a second person on the other one, in one session; both follow its stream."""
    ann = begin(one)
    bob = join(other, ann.session)
    ann.follow()
    bob.follow()
    ann.sees(leader=1)
    bob.sees(leader=1)
    yield ann, bob
    ann.close()
    bob.close()
