"""Whole files in, whole files out: none that never ends is read, and none is ever seen half written."""

import contextlib
import errno
import math
import os
import stat
import uuid
from pathlib import Path
from typing import Any

from lqgap.errors import InvalidArgumentError, StorageError

MAX_SIZE = 2**30  # bytes that are read at most
PIECE = 2**20  # bytes that are read at a time
FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a disk, not of the user


def read_path(path: Any) -> Path:
    """The path of a file or a folder, as a text or an `os.PathLike`."""
    if not isinstance(path, str | os.PathLike) or os.fspath(path) in ("", b"") or "\0" in str(path):
        raise InvalidArgumentError(f"the path is {path!r:.100}, expected a text or a pathlib.Path")
    return Path(path)


def read_bytes(path: str | os.PathLike[str], *, limit: int = MAX_SIZE) -> bytes:
    """The content of a regular file; a device, a pipe or a file above the limit is refused unread."""
    path = read_path(path)
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise InvalidArgumentError(f"{path} cannot be read: it is a folder")
        if not stat.S_ISREG(about.st_mode):
            raise InvalidArgumentError(f"{path} cannot be read: it is a device or a pipe, not a file")
        content = bytearray()
        with path.open("rb") as file:
            while about.st_size <= limit >= len(content) and (piece := file.read(PIECE)):
                content += piece
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}") from None
    if max(about.st_size, len(content)) > limit:
        raise InvalidArgumentError(f"{path} is larger than {limit / 2**20:g} MB, and is not read")
    return bytes(content)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place and move it there; folders that are missing are made."""
    path = read_path(path)
    beside = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        kind = StorageError if error.errno in FAILURES else InvalidArgumentError
        raise kind(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def write_if_changed(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file unless it has this content already: where nothing can be written, that may be enough."""
    path = read_path(path)
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)


def require_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder, if it is missing; raise unless files can be put there."""
    path = read_path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be used as a folder: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise InvalidArgumentError(f"{path} cannot be written: it is read-only")


def finite_or_text(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {key: finite_or_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_text(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
