"""Files as Datasets: CSV with dtypes that are found or told, lines of text, and errors that say what to do."""

import gzip

import numpy as np
import pytest
from test_data_groups import shown

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError, NotFoundError

make = tf.data.experimental.make_csv_dataset
TEXT = 'age,fare,name,big,label\n22,7.25,"Smith, J",1,0\n,8,Ann,9999999999,1\n35,,,3,1\n'


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "passengers.csv"
    path.write_text(TEXT)
    return str(path)


def rows_of(path, **options):
    return make(path, 2, num_epochs=1, shuffle=False, **options)


def test_dtypes_are_those_that_all_fields_fit_and_empty_fields_are_zeros(file):
    dataset = rows_of(file, label_name="label")
    features, labels = dataset.element_spec
    assert {name: leaf.dtype.name for name, leaf in features.items()} == {
        "age": "int32", "fare": "float32", "name": "string", "big": "int64",
    }  # fmt: skip
    assert labels == tf.TensorSpec([None], "int32") and len(dataset) == 2
    (first, zero), (second, one) = shown(dataset)
    assert first == {"age": [22, 0], "fare": [7.25, 8.0], "name": ["Smith, J", "Ann"], "big": [1, 9999999999]}
    assert second == {"age": [35], "fare": [0.0], "name": [""], "big": [3]} and (zero, one) == ([0, 1], [1])


def test_columns_are_selected_renamed_and_given_dtypes_and_defaults(file):
    (batch, _) = shown(rows_of(file, select_columns=["fare", 0], column_defaults=[-1, tf.constant([0.5])]))
    assert batch == {"age": [22, -1], "fare": [7.25, 8.0]}
    named = rows_of(file, column_names=list("abcde"), select_columns=["e"], column_defaults=[tf.float64])
    assert named.element_spec == {"e": tf.TensorSpec([None], "float64")}


def test_files_without_a_header_of_other_separators_and_compressed_ones(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(f"{number};'x\n{number};nan\n".encode()))
    options = {"header": False, "field_delim": ";", "use_quote_delim": False, "compression_type": "GZIP"}
    batches = shown(rows_of(str(tmp_path / "*.gz"), column_names=["n", "t"], **options))
    assert batches == [{"n": [0, 0], "t": ["'x", "nan"]}, {"n": [1, 1], "t": ["'x", "nan"]}]
    with pytest.raises(ValueError, match="compression_type must be None, '' or 'GZIP', found 'ZLIB'"):
        rows_of(str(tmp_path / "*.gz"), compression_type="ZLIB")


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_file_of_very_many_columns_is_refused_before_it_is_read(tmp_path, compression):
    path = tmp_path / "wide.csv"
    with (gzip.open if compression else open)(path, "wt") as stream:
        stream.write(",".join(map(str, range(10**6))) + "\n")
    for read in (
        lambda **options: make(str(path), 2, **options),
        lambda **options: tf.data.experimental.CsvDataset(str(path), [1], **options),
    ):
        with pytest.raises(InvalidArgumentError, match="has at least 1000000 columns.*np.loadtxt"):
            read(compression_type=compression)


def test_rows_are_shuffled_and_repeated_without_end_unless_told_otherwise(file):
    endless = make(file, 2, select_columns=["big"], shuffle_seed=1)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY and endless.element_spec["big"].shape == (2,)
    found = np.concatenate([batch["big"] for batch in shown(endless.take(6))]).reshape(4, 3)
    assert np.all(np.sort(found, axis=1) == [1, 3, 9999999999]) and len({tuple(row) for row in found.tolist()}) > 1


def test_dtypes_are_found_by_the_first_rows_and_what_does_not_fit_later_is_said(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text("a,b\n1,1.5\n2,x\nthree,2\n")
    with pytest.raises(DTypeError, match=r"column 'a' is int32, row 2 holds 'three'.*num_rows_for_inference=None"):
        rows_of(path, num_rows_for_inference=1)
    assert {leaf.dtype.name for leaf in rows_of(path, num_rows_for_inference=None).element_spec.values()} == {"string"}
    assert shown(rows_of(path, num_rows_for_inference=1, ignore_errors=True)) == [{"a": [1], "b": [1.5]}]


def test_numbers_keep_every_digit_and_floats_may_be_infinite(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("i,f,d\n9007199254740993,inf,1e300\n-9223372036854775808,NaN,0.5\n")
    (batch,) = rows_of(path)
    assert batch["i"].numpy().tolist() == [9007199254740993, -(2**63)] and batch["d"].dtype == tf.float64
    assert np.isinf(batch["f"].numpy()[0]) and np.isnan(batch["f"].numpy()[1])
    with pytest.raises(DTypeError, match="column 'i' is int32, row 0 holds '9007199254740993'"):
        rows_of(path, column_defaults=[tf.int32, 0.0, 0.0])


def test_errors_name_what_is_there(file, tmp_path):
    with pytest.raises(NotFoundError, match=r"make_csv_dataset: there is no file 'nowhere\.csv'"):
        make("nowhere.csv", 2)
    with pytest.raises(ValueError, match=r"label_name must be one of the columns \['age', .*found 'survived'"):
        make(file, 2, label_name="survived")
    with pytest.raises(ValueError, match=r"there are the columns .* found \['x', 9\] in the selection"):
        make(file, 2, select_columns=["age", "x", 9])
    with pytest.raises(InvalidArgumentError, match="column 'age' is required, but row 1 has no value"):
        make(file, 2, select_columns=[0], column_defaults=[tf.int32])
    with pytest.raises(ValueError, match=r"a dtype or default is needed for each of \['age'\], found 2"):
        make(file, 2, select_columns=[0], column_defaults=[0, 1])
    with pytest.raises(ValueError, match="has 5 columns, expected 2"):
        make(file, 2, column_names=["a", "b"])
    with pytest.raises(DTypeError, match="complex64 was asked for"):
        make(file, 2, select_columns=[0], column_defaults=[tf.complex64])
    broken = tmp_path / "broken.csv"
    broken.write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(InvalidArgumentError, match=r"cannot be read with separator ','.*line 3"):
        make(str(broken), 2)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        make(str(tmp_path / "empty.csv"), 2)


@pytest.mark.parametrize("options", [{"column_names": ["u", "u", "v", "w"]}, {"field_delim": "ab"}, {"field_delim": ""}])
def test_names_differ_and_a_separator_is_one_character(file, options):
    with pytest.raises(ValueError, match="field_delim must be one character, and names of columns differ"):
        make(file, 2, **options)


def test_records_are_tuples_of_scalars(file):
    records = tf.data.experimental.CsvDataset
    with pytest.raises(InvalidArgumentError, match="column '2' is required, but row 2 has no value"):
        records(file, [-1, tf.string, tf.int64], header=True, select_cols=[0, 2, 3])
    rows = records([file, file], [-1, "?", tf.int64], header=True, exclude_cols=[1, 4])
    assert shown(rows) == [(22, "Smith, J", 1), (-1, "Ann", 9999999999), (35, "?", 3)] * 2
    with pytest.raises(InvalidArgumentError, match="either select_cols or exclude_cols"):
        records(file, [0], select_cols=[0], exclude_cols=[1])


# Lines -----------------------------------------------------------------------------------------------------------------


def test_lines_come_from_one_file_after_another_without_their_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\r\n\nthr\u00e9e".encode())
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"four\nfive\n"))
    first, second = str(tmp_path / "a.txt"), str(tmp_path / "b.gz")
    lines = tf.data.TextLineDataset([first, first])
    assert shown(lines) == ["one", "", "thr\u00e9e"] * 2 and lines.element_spec == tf.TensorSpec([], "string")
    assert shown(tf.data.TextLineDataset(tf.constant(second), "GZIP").batch(2)) == [["four", "five"]]
    names = tf.data.Dataset.list_files(str(tmp_path / "a.*"), shuffle=False)
    assert shown(names.interleave(tf.data.TextLineDataset)) == shown(tf.data.TextLineDataset(names)) == shown(lines.take(3))
    with pytest.raises(NotFoundError, match="TextLineDataset: there is no file 'nowhere'"):
        shown(tf.data.TextLineDataset("nowhere"))
    with pytest.raises(ValueError, match="compression_type must be None, '' or 'GZIP', found 'ZLIB'"):
        tf.data.TextLineDataset(first, "ZLIB")
