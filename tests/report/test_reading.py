import pytest
from example_record import example_record

from lqgap.errors import CorruptFileError, InvalidArgumentError
from lqgap.report.reading import RECORD, read_record


def test_a_record_comes_back_from_its_folder(tmp_path):
    record = example_record()
    (tmp_path / RECORD).write_text(record.model_dump_json())
    assert read_record(tmp_path) == record


def test_a_folder_without_a_record_is_refused_with_what_makes_one(tmp_path):
    with pytest.raises(InvalidArgumentError, match="lqgap transfer"):
        read_record(tmp_path)


@pytest.mark.parametrize("cut", [0, 1, 1000])
def test_a_damaged_record_is_called_so(tmp_path, cut):
    (tmp_path / RECORD).write_text(example_record().model_dump_json()[:cut])
    with pytest.raises(CorruptFileError, match="is not a record"):
        read_record(tmp_path)


def test_the_message_says_where_a_record_is_wrong(tmp_path):
    (tmp_path / RECORD).write_text(
        example_record().model_dump_json().replace('"num_kept":24', '"num_kept":"all"')
    )
    with pytest.raises(CorruptFileError, match=r"audit\.num_kept"):
        read_record(tmp_path)
