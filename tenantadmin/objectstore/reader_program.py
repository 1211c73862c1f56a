"""The program of the processes that `reader` starts. It imports little, and so is there at once.

Both sides see a memory of rooms. A request names a room, and how many bytes of names stand in it, a NUL
between any two: a folder's, and those of files in it. The answer names the room, how many of the files it is
about, and how many bytes of etags, a NUL between any two, follow their sizes of 8 bytes each. Bodies stand
behind both, a line break after each. Sizes and etags are those of before the files were read.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array

#: Bytes of a room: for names, or sizes and etags, and behind that for bodies.
LIST_BYTES = 1 << 20
BODY_BYTES = 8 << 20
ROOM_BYTES = LIST_BYTES + BODY_BYTES
MESSAGE_BYTES = 64
#: The size of a file that is left to the other side.
NOT_READ = -1
#: How files and folders are opened: a symbolic link is no object, and nothing is waited for.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FOLDER_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY

_LINE_BREAK = ord("\n")


def etag_of(status: os.stat_result) -> str:
    """What changes whenever the content of a file does."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


def main(control: int, memory: int) -> None:
    """Answer requests until the other side is gone.

    Args:
        control: a socket that keeps messages apart.
        memory: a file of rooms.
    """
    rooms = memoryview(mmap.mmap(memory, 0))
    try:
        while message := os.read(control, MESSAGE_BYTES):
            number, size = map(int, message.split())
            room = rooms[number * ROOM_BYTES :][:ROOM_BYTES]
            folder, *names = room[:size].tobytes().split(b"\0")
            sizes, etags = _read(folder, names, room[LIST_BYTES:])
            listed = "\0".join(etags).encode()
            own = len(sizes) * sizes.itemsize
            room[:own] = memoryview(sizes).cast("B")
            room[own : own + len(listed)] = listed
            os.write(control, b"%d %d %d" % (number, len(sizes), len(listed)))
    except (BrokenPipeError, ConnectionResetError):
        # It is gone while an answer is unread, or on its way.
        return


def _read(folder: bytes, names: list[bytes], room: memoryview) -> tuple[array[int], list[str]]:
    """Read files into a room: all, or the first for which it has room.

    What is out of the ordinary is left to the other side: what is gone, empty or no file, cannot be read, is
    changed meanwhile, or fits into no room.
    """
    sizes = array("q")
    etags: list[str] = []
    try:
        place = os.open(folder, FOLDER_FLAGS)
    except OSError:
        return array("q", [NOT_READ] * len(names)), [""] * len(names)
    end = 0
    try:
        for name in names:
            length, etag = NOT_READ, ""
            try:
                descriptor = os.open(name, FILE_FLAGS, dir_fd=place)
                try:
                    status = os.fstat(descriptor)
                    behind = end + status.st_size
                    if behind >= BODY_BYTES and sizes:
                        break
                    # Room for a byte more than there were shows whether there are.
                    if end < behind < BODY_BYTES and (
                        os.readv(descriptor, [room[end : behind + 1]]) == behind - end
                    ):
                        room[behind] = _LINE_BREAK
                        length, etag = behind - end, etag_of(status)
                        end = behind + 1
                finally:
                    os.close(descriptor)
            except OSError:
                pass
            sizes.append(length)
            etags.append(etag)
    finally:
        os.close(place)
    return sizes, etags


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
