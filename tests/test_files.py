import errno
import os

import pytest

import lqgap as lg
from lqgap.files import finite_or_text, read_bytes, require_folder, write_bytes, write_if_changed


def test_a_file_comes_back_and_nothing_lies_beside_it(tmp_path):
    path = tmp_path / "deep" / "file"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert read_bytes(path) == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_places_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(lg.InvalidArgumentError, match="nowhere cannot be read: No such file"):
        read_bytes(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    for write in (write_bytes, write_if_changed):
        with pytest.raises(lg.InvalidArgumentError, match="cannot be written"):
            write(tmp_path / "file" / "below", b"")
    with pytest.raises(lg.InvalidArgumentError, match="file cannot be used as a folder: File exists"):
        require_folder(tmp_path / "file")


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(lg.InvalidArgumentError, match="cannot be read: it is a"):
            read_bytes(path)
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", limit=5) == b"12345"
    with pytest.raises(lg.InvalidArgumentError, match="larger than"):
        read_bytes(tmp_path / "file", limit=4)
    with pytest.raises(lg.InvalidArgumentError, match="larger than"):
        read_bytes("/proc/self/maps", limit=4)  # which says that it is empty


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_is_no_fault_of_an_argument(tmp_path, monkeypatch, number):
    def fail(_):
        raise OSError(number, os.strerror(number))

    write_bytes(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(lg.StorageError, match="file cannot be written: "):
        write_bytes(tmp_path / "file", b"new")
    assert read_bytes(tmp_path / "file") == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_is_the_same_is_not_written_again(tmp_path, monkeypatch):
    write_if_changed(tmp_path / "file", b"one")
    monkeypatch.setattr("lqgap.files.write_bytes", lambda *_: pytest.fail("written"))
    write_if_changed(tmp_path / "file", b"one")


def test_a_folder_is_made_and_must_admit_files(tmp_path, monkeypatch):
    require_folder(tmp_path / "a" / "b")
    assert not list((tmp_path / "a" / "b").iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(lg.InvalidArgumentError, match="read-only"):
        require_folder(tmp_path / "a")


def test_json_has_texts_for_what_is_no_number():
    assert finite_or_text({"a": [1.0, float("inf")], "b": float("nan")}) == {"a": [1.0, "inf"], "b": "nan"}


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("path", [3, None, b"x", "", "a\0b", [], object(), os])
def test_what_is_no_path_is_refused_in_one_place(path):
    for function in (read_bytes, require_folder, lambda path: write_bytes(path, b"")):
        with pytest.raises(lg.InvalidArgumentError, match="expected a text or a pathlib"):
            function(path)


def test_a_folder_is_no_place_to_write_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lg.InvalidArgumentError, match="cannot be written"):
        write_bytes(".", b"")
    assert list(tmp_path.iterdir()) == []
