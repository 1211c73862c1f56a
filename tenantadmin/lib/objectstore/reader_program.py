"""The program of the processes that `reader` starts. It imports little, so that it starts fast.

The processes share memory, which is divided into buffers. Messages on a socket carry only numbers:

- A request is ``<buffer> <bytes of names>``. The buffer starts with the names, separated by NULs: first the
  folder, then files in it.
- A response is ``<buffer> <count of files> <bytes of etags>``. The buffer then starts with the sizes of the
  files, 8 bytes each, and their etags, separated by NULs. The contents start at ``LIST_BYTES``, with a line
  break after each. Sizes and etags are taken before the files are read.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array

#: A buffer has so many bytes for names, or sizes and etags, and then so many for contents.
LIST_BYTES = 1 << 20
CONTENT_BYTES = 8 << 20
BUFFER_BYTES = LIST_BYTES + CONTENT_BYTES
MESSAGE_BYTES = 64
#: Given as the size of a file that the requesting process must read itself.
NOT_READ = -1
#: Flags to open files and folders: do not follow symbolic links, do not wait for the writer of a pipe.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FOLDER_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY

_LINE_BREAK = ord("\n")


def etag_of(status: os.stat_result) -> str:
    """Return a text that changes whenever the content of the file changes."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


def main(control: int, memory: int) -> None:
    """Answer requests until the requesting process closes the socket.

    Args:
        control: descriptor of a socket that keeps message boundaries.
        memory: descriptor of the shared memory.
    """
    buffers = memoryview(mmap.mmap(memory, 0))
    try:
        while message := os.read(control, MESSAGE_BYTES):
            number, size = map(int, message.split())
            buffer = buffers[number * BUFFER_BYTES :][:BUFFER_BYTES]
            folder, *names = buffer[:size].tobytes().split(b"\0")
            sizes, etags = _read(folder, names, buffer[LIST_BYTES:])
            etags_text = "\0".join(etags).encode()
            sizes_bytes = len(sizes) * sizes.itemsize
            buffer[:sizes_bytes] = memoryview(sizes).cast("B")
            buffer[sizes_bytes : sizes_bytes + len(etags_text)] = etags_text
            os.write(control, b"%d %d %d" % (number, len(sizes), len(etags_text)))
    except (BrokenPipeError, ConnectionResetError):
        # The requesting process ended before it read a response.
        return


def _read(folder: bytes, names: list[bytes], content: memoryview) -> tuple[array[int], list[str]]:
    """Read files into ``content``: all of them, or as many of the first as fit.

    Return `NOT_READ` as the size of each unusual file: missing, empty, not a file, unreadable, changed while
    it was read, or larger than a buffer.
    """
    sizes = array("q")
    etags: list[str] = []
    try:
        parent = os.open(folder, FOLDER_FLAGS)
    except OSError:
        return array("q", [NOT_READ] * len(names)), [""] * len(names)
    end = 0
    try:
        for name in names:
            length, etag = NOT_READ, ""
            try:
                descriptor = os.open(name, FILE_FLAGS, dir_fd=parent)
                try:
                    status = os.fstat(descriptor)
                    next_end = end + status.st_size
                    if next_end >= CONTENT_BYTES and sizes:
                        break
                    # Asking for one byte more shows whether the file has grown.
                    if end < next_end < CONTENT_BYTES and (
                        os.readv(descriptor, [content[end : next_end + 1]]) == next_end - end
                    ):
                        content[next_end] = _LINE_BREAK
                        length, etag = next_end - end, etag_of(status)
                        end = next_end + 1
                finally:
                    os.close(descriptor)
            except OSError:
                pass
            sizes.append(length)
            etags.append(etag)
    finally:
        os.close(parent)
    return sizes, etags


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
