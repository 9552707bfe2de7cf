"""Text files as Datasets: lines, and values between commas, which pandas reads; dtypes are found, or told, as in TensorFlow."""

from __future__ import annotations

import csv
import glob
import gzip
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..boundary import explaining
from ..core import convert_to_tensor, to_numpy
from ..errors import DTypeError, InvalidArgumentError, NotFoundError
from ..extras import imported
from ..types import DType, as_dtype
from .dataset import Dataset
from .elements import UNKNOWN_CARDINALITY, is_dataset


@explaining
def TextLineDataset(
    filenames: Any, compression_type: str | None = None, buffer_size: int | None = None, num_parallel_reads: int | None = None
) -> Dataset:
    """The lines of text files, strings without the end of the line. Files are read in each iteration, as far as is needed.

    Args:
        filenames: a path, several, or a Dataset of paths.
        compression_type: None, '' or 'GZIP'.
        buffer_size: accepted for compatibility.
        num_parallel_reads: accepted for compatibility; `prefetch` and `interleave` read ahead.

    Raises:
        ValueError: for another compression.
        NotFoundError: while iterating, if there is no such file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "poem.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("Roses are red,\\nviolets are blue.\\n")
    >>> [str(line.numpy()) for line in TextLineDataset(path)]
    ['Roses are red,', 'violets are blue.']
    """
    if compression_type not in (None, "", "GZIP"):
        raise ValueError(f"TextLineDataset: compression_type must be None, '' or 'GZIP', found {compression_type!r}.")
    opened = gzip.open if compression_type else open

    def rows() -> Iterator[Any]:
        for name in filenames.as_numpy_iterator() if is_dataset(filenames) else np.ravel(filenames):
            try:
                with opened(str(name), "rt", encoding="utf-8", newline=None) as file:
                    for line in file:
                        yield convert_to_tensor(line.rstrip("\n"))
            except FileNotFoundError:
                raise NotFoundError(f"TextLineDataset: there is no file {str(name)!r}.") from None

    return Dataset(rows, UNKNOWN_CARDINALITY, (filenames,) if is_dataset(filenames) else ())


MOST_COLUMNS, _LONGEST_LINE = 20_000, 1 << 24
_KINDS = ("int32", "int64", "float32", "float64", "string")


@explaining
def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Batches of the rows of CSV files: a dict of columns, or with `label_name` a pair of such a dict and the labels.

    The files are read at once and kept in memory.

    Args:
        file_pattern: path or pattern of files, or several.
        batch_size: number of rows in a batch. The last one is smaller, unless the data has no end.
        column_names: of all columns; None for the names in the first line of the first file.
        column_defaults: for each selected column, in the order of the file, a dtype, which makes it required, or the value of
            empty fields. None: int32, int64, float32, float64 or string, whatever fits first; empty fields are 0 or ''.
        label_name: the column of the labels.
        select_columns: names or numbers of the columns to read; None for all.
        field_delim: what separates fields.
        use_quote_delim: whether quotation marks surround fields.
        na_value: text that stands for an empty field.
        header: whether the first line of each file names the columns.
        num_epochs: how often the rows come; None for without end.
        shuffle: whether in random order.
        shuffle_buffer_size: rows among which the next one is drawn.
        shuffle_seed: of the order.
        num_rows_for_inference: rows by which dtypes are found; None for all.
        compression_type: None, '' or 'GZIP'.
        ignore_errors: leave out rows that do not fit, instead of raising.
        encoding: of the text.
        prefetch_buffer_size, num_parallel_reads, sloppy: accepted for compatibility: rows are in memory.

    Raises:
        MissingExtraError: without pandas.
        NotFoundError: if there is no such file.
        ValueError: for names of columns that there are not, or that are not one for each column.
        DTypeError: for a field that does not fit the dtype of its column.
        InvalidArgumentError: for an empty field of a required column.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "passengers.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("age,name,survived\\n22,Ann,1\\n,Bob,0\\n")
    >>> for features, labels in make_csv_dataset(path, 2, label_name="survived", num_epochs=1, shuffle=False):
    ...     print(features["age"].numpy(), features["name"].numpy().tolist(), labels.numpy())
    [22  0] ['Ann', 'Bob'] [1 0]
    """
    text = {"sep": field_delim, "quote": use_quote_delim, "compression": compression_type, "encoding": encoding}
    # A path without a file stays, and is missed when it is read.
    files = [path for one in np.ravel(file_pattern) for path in sorted(glob.glob(str(one))) or [str(one)]]
    frame = _read("make_csv_dataset", files, header, column_names, ignore_errors, text)
    chosen = _selected("make_csv_dataset", [str(name) for name in frame.columns], select_columns)
    if label_name is not None and label_name not in chosen:
        raise ValueError(f"make_csv_dataset: label_name must be one of the columns {chosen}, found {label_name!r}.")
    columns = _columns("make_csv_dataset", frame[chosen], column_defaults, na_value, num_rows_for_inference, ignore_errors)
    labels = columns.pop(label_name) if label_name is not None else None
    dataset = Dataset.from_columns(columns if label_name is None else (columns, labels))
    if shuffle and len(dataset):
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    return dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)


@explaining
def CsvDataset(
    filenames: Any,
    record_defaults: Sequence[Any],
    compression_type: str | None = None,
    buffer_size: int | None = None,
    header: bool = False,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    exclude_cols: Sequence[int] | None = None,
) -> Dataset:
    """The rows of CSV files, each a tuple of scalars; the files are read at once and kept in memory.

    Args:
        filenames: a path, or several.
        record_defaults: for each selected column a dtype, which makes it required, or the value of empty fields.
        compression_type, header, field_delim, use_quote_delim, na_value: as for `make_csv_dataset`.
        buffer_size: accepted for compatibility.
        select_cols: numbers of the columns to read, in rising order.
        exclude_cols: instead, numbers of columns to leave out.

    Raises:
        MissingExtraError, NotFoundError, DTypeError, InvalidArgumentError: as `make_csv_dataset`.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "points.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("1,0.5\\n2,\\n")
    >>> [(int(number), float(value)) for number, value in CsvDataset(path, [tf.int32, -1.0])]
    [(1, 0.5), (2, -1.0)]
    """
    if select_cols is not None and exclude_cols is not None:
        raise InvalidArgumentError("CsvDataset: give either select_cols or exclude_cols.")
    text = {"sep": field_delim, "quote": use_quote_delim, "compression": compression_type, "encoding": "utf-8"}
    frame = _read("CsvDataset", [str(one) for one in np.ravel(filenames)], header, None, False, text)
    frame.columns = [str(number) for number in range(frame.shape[1])]
    if exclude_cols is not None:
        select_cols = [number for number in range(frame.shape[1]) if number not in exclude_cols]
    chosen = _selected("CsvDataset", list(frame.columns), select_cols)
    return Dataset.from_columns(tuple(_columns("CsvDataset", frame[chosen], record_defaults, na_value, None, False).values()))


def _read(name: str, files: list[str], header: bool, names: Sequence[str] | None, skip: bool, text: dict[str, Any]) -> Any:
    """The fields of all files, a data frame of strings."""
    pandas = imported("pandas", f"{name} needs pandas")
    compressions = {None: None, "": None, "GZIP": "gzip"}
    if text["compression"] not in compressions:
        raise ValueError(f"{name}: compression_type must be None, '' or 'GZIP', found {text['compression']!r}.")
    if len(text["sep"]) != 1 or len(set(names or ())) < len(names or ()):
        raise ValueError(
            f"{name}: field_delim must be one character, and names of columns differ, found {text['sep']!r} and {names}."
        )
    options = {
        "dtype": str,
        "na_filter": False,
        "header": 0 if header else None,
        "sep": text["sep"],
        "quoting": csv.QUOTE_MINIMAL if text["quote"] else csv.QUOTE_NONE,
        "compression": compressions[text["compression"]],
        "encoding": text["encoding"],
        "index_col": False,
        "on_bad_lines": "skip" if skip else "error",
    }
    frames: list[Any] = []
    for file in files:
        try:
            with (gzip.open if text["compression"] else open)(file, "rb") as stream:
                columns = stream.readline(_LONGEST_LINE).count(text["sep"].encode(text["encoding"])) + 1
            if columns > MOST_COLUMNS:
                raise InvalidArgumentError(
                    f"{name}: {file!r} has at least {columns} columns, each of which is an array of its own; up to "
                    f"{MOST_COLUMNS} are read. Read it as one array: np.loadtxt(file, delimiter=',')."
                )
            frame = pandas.read_csv(file, **options)
        except FileNotFoundError:
            raise NotFoundError(
                f"{name}: there is no file {file!r}. The current folder is where relative paths begin."
            ) from None
        except (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(f"{name}: {file!r} cannot be read with separator {text['sep']!r}: {error}") from error
        wanted = names if names is not None else frames[0].columns if frames else frame.columns
        if len(wanted) != frame.shape[1]:
            raise ValueError(f"{name}: {file!r} has {frame.shape[1]} columns, expected {len(wanted)}: {list(wanted)}.")
        frame.columns = [str(one) for one in wanted]
        frames.append(frame)
    if not frames:
        raise NotFoundError(f"{name}: no file was named.")
    return pandas.concat(frames, ignore_index=True)


def _selected(name: str, names: list[str], wanted: Sequence[Any] | None) -> list[str]:
    """Columns by name or number, in the order of the file."""
    if wanted is None:
        return names
    unknown = [one for one in wanted if not (one in names or (isinstance(one, int) and 0 <= one < len(names)))]
    if unknown:
        raise ValueError(f"{name}: there are the columns {names}, found {unknown} in the selection.")
    numbers = {one if isinstance(one, int) else names.index(one) for one in wanted}
    return [names[number] for number in sorted(numbers)]


def _columns(
    name: str, frame: Any, defaults: Sequence[Any] | None, na_value: str, rows: int | None, skip: bool
) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of a frame of strings as arrays."""
    if defaults is not None and len(defaults) != frame.shape[1]:
        raise ValueError(f"{name}: a dtype or default is needed for each of {list(frame.columns)}, found {len(defaults)}.")
    found = {}
    fits = np.ones(len(frame), bool)
    for number, column in enumerate(frame.columns):
        texts = frame[column].to_numpy(object)
        empty = (texts == "") | (texts == na_value)
        if defaults is None:  # the first dtype that all texts fit, and its zero; strings if there are none
            known = texts[:rows][~empty[:rows]]
            kind = next((one for one in _KINDS if len(known) and _parsed(known, as_dtype(one))[1].all()), "string")
            dtype, default = as_dtype(kind), "" if kind == "string" else 0
        else:
            dtype, default = _told(defaults[number])
        values, right = _parsed(np.where(empty, "0" if dtype.name != "string" else "", texts), dtype)
        if default is None:
            right &= ~empty
        else:
            values[empty] = default
        if not (skip or right.all()):
            raise _does_not_fit(name, column, dtype, texts, int(right.argmin()), bool(empty[right.argmin()]))
        found[column], fits = values, fits & right
    return {column: values[fits] for column, values in found.items()}


def _told(given: Any) -> tuple[DType, Any]:
    """The dtype of a column and the value of its empty fields, None if there must not be any."""
    if isinstance(given, (DType, type, np.dtype)):
        dtype, default = as_dtype(given), None
    else:
        tensor = convert_to_tensor(given)
        values = to_numpy(tensor.array).ravel()
        dtype, default = as_dtype(tensor.dtype), values[0] if values.size else None
    if dtype.name not in _KINDS:
        raise DTypeError(f"a column of a CSV file is of dtype {', '.join(_KINDS)}; {dtype.name} was asked for.")
    return dtype, default


def _parsed(texts: np.ndarray[Any, Any], dtype: DType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Texts as numbers of a dtype, and which of them are such numbers."""
    import pandas

    if dtype.name == "string":
        return texts.copy(), np.ones(len(texts), bool)
    numbers = pandas.to_numeric(pandas.Series(texts), errors="coerce").to_numpy()
    if dtype.name.startswith("float"):
        with np.errstate(over="ignore"):
            values = numbers.astype(dtype.numpy)
        right = np.isfinite(values)
        right[~right] = [text.strip().lower().lstrip("+-") in ("nan", "inf", "infinity") for text in texts[~right]]
        return values, right
    limits = np.iinfo(dtype.numpy)
    if numbers.dtype.kind not in "iu":  # one by one: an int64 may be no float64
        parsed = [_as_int(text, limits) for text in texts]
        return np.array([one or 0 for one in parsed], dtype.numpy), np.array([one is not None for one in parsed], bool)
    right = (numbers >= limits.min) & (numbers <= limits.max)
    return np.where(right, numbers, 0).astype(dtype.numpy), right


def _as_int(text: str, limits: np.iinfo[Any]) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if limits.min <= number <= limits.max else None


def _does_not_fit(name: str, column: str, dtype: DType, texts: Any, row: int, empty: bool) -> Exception:
    if empty:
        return InvalidArgumentError(
            f"{name}: column {column!r} is required, but row {row} has no value. Give a default instead of a dtype."
        )
    return DTypeError(
        f"{name}: column {column!r} is {dtype.name}, row {row} holds {texts[row]!r:.80}. Mixed columns can be read as strings: "
        "give the default ''; or find dtypes by all rows: num_rows_for_inference=None."
    )
