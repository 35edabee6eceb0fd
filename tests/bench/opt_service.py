"""The peer of small compiles: a service in the manner of Compiler Explorer, which starts the compiler anew for each
request.  POST / with a JSON object {"source": MLIR text}: it is written to a file in a directory of its own, `mlir-opt-22`
is run on it with limits, and the answer is {"code", "stdout", "stderr"}.  No jail, no store, no checks.

    python3 tests/bench/opt_service.py PORT
"""
import asyncio
import json
import resource
import sys
import tempfile

COMMAND = ["mlir-opt-22", "--canonicalize", "--cse"]
AT_ONCE = 2  # as many as processors


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))


async def compile_one(source):
    with tempfile.TemporaryDirectory(prefix="opt-") as d:
        path = f"{d}/example.mlir"
        with open(path, "w") as f:
            f.write(source)
        p = await asyncio.create_subprocess_exec(*COMMAND, path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                                                 preexec_fn=limits)
        out, err = await p.communicate()
        return {"code": p.returncode, "stdout": out.decode(), "stderr": err.decode()}


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
            body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
            if head.startswith(b"GET"):
                answer = {"code": 0}
            else:
                async with turn:
                    answer = await compile_one(json.loads(body)["source"])
            data = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    global turn
    turn = asyncio.Semaphore(AT_ONCE)
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
