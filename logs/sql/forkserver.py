"""The process that prepares query processes: a clean interpreter which has imported, connected and waits.

Forking it costs a millisecond where starting an interpreter costs 150, and the forks share nothing with
the service: no memory, no descriptor, no environment. Started by `logs.sql.pool`.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
from contextlib import suppress

from logs.sql import child, sandbox, wire

#: Seconds between two looks for ended query processes when nobody asks for a new one.
_REAP_INTERVAL = 1.0

_MESSAGE_BYTES = 4096


def main(control_descriptor: int) -> None:
    """Fork one query process per message, a `wire.Preparation`; end them all when the service closes.

    Answers each message with the process id as text, and two descriptors: the socket to the process and
    its pidfd.
    """
    control = socket.socket(fileno=control_descriptor)
    connection = child.connect()
    for _ in child.rehearse(connection):
        pass
    gc.collect()
    # A process that lives for one query needs no collection, which would copy the pages it looks at.
    gc.disable()
    gc.freeze()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        ready = poll.poll(_REAP_INTERVAL * 1000)
        _reap()
        if not ready:
            continue
        message = control.recv(_MESSAGE_BYTES)
        if not message:
            return
        ours, theirs = socket.socketpair()
        with ours, theirs:
            pid = os.fork()
            if pid == 0:
                control.close()
                theirs.close()
                _run_child(ours.fileno(), connection, wire.Preparation.from_bytes(message))
            handle = os.pidfd_open(pid)
            try:
                socket.send_fds(control, [str(pid).encode()], [theirs.fileno(), handle])
            finally:
                os.close(handle)


def _run_child(descriptor: int, connection: object, preparation: wire.Preparation) -> None:
    """Serve one query; never return into the caller's frames."""
    status = 1
    try:
        sandbox.die_with_parent()
        os.dup2(0, 2)
        child.serve(descriptor, connection, preparation)
        status = 0
    except BrokenPipeError:
        status = 0
    finally:
        os._exit(status)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
