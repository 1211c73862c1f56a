"""The process from which query processes are forked. It has imported everything and opened DuckDB.

A fork takes a millisecond; starting an interpreter takes 150. The forks share nothing with the service: no
memory, no descriptors, no environment. `logs.sql.engines.pool` starts this process.
"""

from __future__ import annotations

import gc
import os
import select
import socket
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from logs.sql import child, sandbox, wire
from tenantadmin.lib.core.memory import freeze_objects

#: The signals that ended the last processes, by process id; 0 for a process that exited.
_signals: OrderedDict[int, int] = OrderedDict()
_KEPT_SIGNALS: Final = 1_000

#: Seconds between two collections of ended query processes if no new one is requested.
_REAP_SECONDS = 1.0

_MESSAGE_BYTES = 4096


def main(control_descriptor: int) -> None:
    """Answer messages until the service closes the socket. The query processes end with this process.

    A `wire.ProcessLimits` asks for a query process: the answer is its id as text and two descriptors, the
    socket to it and its pidfd. The id of an ended process asks for the number of the signal that ended it.
    """
    control = socket.socket(fileno=control_descriptor)
    connection = child.connect()
    child.warm_up(connection)
    freeze_objects()
    # A query process ends before it needs garbage collection, which would only copy shared pages of memory.
    gc.disable()
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        ready = poll.poll(_REAP_SECONDS * 1000)
        _reap_children()
        if not ready:
            continue
        message = control.recv(_MESSAGE_BYTES)
        if not message:
            return
        if message.isdigit():
            control.send(str(_signals.get(int(message), 0)).encode())
            continue
        ours, theirs = socket.socketpair()
        with ours, theirs:
            pid = os.fork()
            if pid == 0:
                control.close()
                theirs.close()
                _run_child(ours.fileno(), connection, wire.ProcessLimits.from_bytes(message))
            handle = os.pidfd_open(pid)
            try:
                socket.send_fds(control, [str(pid).encode()], [theirs.fileno(), handle])
            finally:
                os.close(handle)


def _run_child(descriptor: int, connection: object, limits: wire.ProcessLimits) -> None:
    """Serve the queries of one tenant, then exit: this function does not return."""
    status = 1
    try:
        sandbox.die_with_parent()
        os.dup2(0, 2)
        child.serve(descriptor, connection, limits)
        status = 0
    except BrokenPipeError:
        status = 0
    finally:
        os._exit(status)


def _reap_children() -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _signals[pid] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            if len(_signals) > _KEPT_SIGNALS:
                _signals.popitem(last=False)
