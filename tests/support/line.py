"""A client's line to a server: it comes from an address of the client's own, and it can break."""
import contextlib
import socket
import struct
import threading

from support.server import Peer

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: what closes is reset


class Line(Peer):
    """Listens at .port and hands each connection to a server, or a proxy, from `address` (127.x.y.z)."""

    def __init__(self, server, address):
        self.server, self.address = server, address
        self._lock, self._ends, self._is_silent = threading.Lock(), set(), False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.server.port), source_address=(self.address, 0))
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._ends |= {near, far}
                for a, b in ((near, far), (far, near)):
                    a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, a, b):
        with contextlib.suppress(OSError):
            while piece := a.recv(65536):
                if not self._is_silent:
                    b.sendall(piece)
            b.shutdown(socket.SHUT_WR)
            return
        self._drop(a, b)

    def _drop(self, *ends):
        with self._lock:
            self._ends -= set(ends)
        for s in ends:
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                s.shutdown(socket.SHUT_RDWR)
            s.close()

    def cut(self):
        """Breaks all connections; new ones can be made."""
        with self._lock:
            ends = list(self._ends)
        self._drop(*ends)

    def silence(self, is_silent):
        """Bytes are lost from now on, as where a network changes, and nobody is told; or no longer."""
        self._is_silent = is_silent

    def end(self):
        self._listener.close()
        self.cut()
