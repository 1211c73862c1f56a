#!/usr/bin/env bash
# asyncio sets TCP_NODELAY on the connections of a server, so that small writes do not wait for each other. It does so
# only if the socket's `proto` is IPPROTO_TCP. socket.create_server() makes sockets whose proto is 0, and so are all
# that they accept. So a server that is given a socket (sock=…, as after socket activation or a fork) waits: an answer
# in two writes takes 40 ms more, the delayed acknowledgement of the other side. With host and port it does not.
#
# Why it matters here: a protocol that answers in small messages, as PostgreSQL's does, is forty times slower on an idle
# machine, and nothing says why. The cure: listening.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1), which is inherited.
set -euo pipefail
python3 - <<'PYTHON'
import asyncio
import socket
import sys
import time


async def measure(**place):
    set_for = []

    async def answer(reader, writer):
        own = writer.get_extra_info("socket")
        set_for.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        while await reader.read(1):
            for piece in (b"a", b"b"):
                writer.write(piece)
                await asyncio.sleep(0.001)
        writer.close()

    server = await asyncio.start_server(answer, **place)
    address = server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(*address)
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        writer.write(b"?")
        await reader.readexactly(2)
        times.append(time.perf_counter() - begun)
    writer.close()
    await reader.read()
    server.close()
    return set_for, sorted(times)[10] * 1000


async def main():
    return {
        "host and port": await measure(host="127.0.0.1", port=0),
        "socket.create_server()": await measure(sock=socket.create_server(("127.0.0.1", 0))),
    }


seen = asyncio.run(main())
print("Python", sys.version.split()[0])
print("expected: TCP_NODELAY is set for both, and both answer in about 3 ms")
for place, (is_set, milliseconds) in seen.items():
    print(f"seen: {place:<24} TCP_NODELAY {is_set}, {milliseconds:.0f} ms for an answer in two writes")
assert {place: is_set for place, (is_set, _) in seen.items()} == {
    "host and port": [True],
    "socket.create_server()": [False],
}, seen
PYTHON
