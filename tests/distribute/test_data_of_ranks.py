"""Which rows ranks read: their own ones of each batch, of every form of data; batches that end early."""

import numpy as np
import pytest
from slow import sampled
from trained import WEIGHTS, X, Y, assert_close, assert_same, check, on_ranks, trained

import minikeras as tf

Dataset = tf.data.Dataset


class Counted(np.memmap):
    """An array in a file that notes which of its rows are read."""

    read: list

    def take(self, indices, axis=None, out=None, mode="raise"):
        self.read.extend(np.asarray(indices).ravel().tolist())
        return np.asarray(self).take(indices, axis, out, mode)

    def __getitem__(self, key):
        if isinstance(key, slice):
            self.read.extend(range(*key.indices(len(self))))
        return np.asarray(self)[key]


def in_a_file(folder, array):
    path = folder / "rows.bin"
    array.tofile(path)
    found = Counted(path, array.dtype, "r", shape=array.shape)
    found.read = []
    return found


@pytest.mark.parametrize("shuffle", [False, True])
def test_each_rank_reads_its_own_rows_alone(shuffle, tmp_path):
    rows = X[:48]
    in_a_file(tmp_path, rows)

    def work():
        x = Counted(tmp_path / "rows.bin", rows.dtype, "r", shape=rows.shape)
        x.read = []
        trained({}, x=x, y=Y[:48], epochs=1, shuffle=shuffle)
        return x.read

    read = on_ranks(4, work)
    assert all(len(set(one)) == 12 for one in read)
    assert sorted(set().union(*read)) == list(range(48))
    if not shuffle:
        assert set(read[1]) == {*range(4, 8), *range(20, 24), *range(36, 40)}


@pytest.mark.parametrize("options", [{}, {"virtual_shards": 4}], ids=str)
def test_float64_arrays_in_files_give_what_those_in_memory_give(options, tmp_path):
    np.save(tmp_path / "x.npy", X.astype(float) / 3.0)
    work = lambda mode: on_ranks(2, lambda: trained(options, x=np.load(tmp_path / "x.npy", mmap_mode=mode), epochs=2))
    for found, expected in zip(work("r"), work(None), strict=True):
        assert_same(found, expected)


class Rows(tf.keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return X[index * 13 : index * 13 + 13], Y[index * 13 : index * 13 + 13]


FORMS = {
    "a Dataset of rows": lambda: Dataset.from_tensor_slices((X, Y)).shuffle(50, seed=1).batch(16),
    "a Dataset that maps": lambda: Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x * 2.0, y)).batch(16).shuffle(4),
    "a Dataset of weights": lambda: Dataset.from_tensor_slices((X, Y, WEIGHTS)).batch(16),
    "a PyDataset": Rows,
    "a list of batches": lambda: [(X[:16], Y[:16]), (X[16:27], Y[16:27]), (X[27:29], Y[27:29])].__iter__(),
}


@pytest.mark.parametrize("size", sampled([2, 3], 2))
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_data_is_shared(form, size):
    options = {
        "y": None,
        "batch_size": None,
        "epochs": 1 if form == "a list of batches" else 2,
        "validation_data": (X[:9], Y[:9]),
    }
    expected = trained(None, x=FORMS[form](), **options)
    found = on_ranks(size, lambda: trained({}, x=FORMS[form](), **options))
    for one in found:
        assert_close(one, expected)
        assert_same(one, found[0])


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": {0: 0.5, 2: 3.0}},
        {"validation_split": 0.3},
        {"shuffle": "batch"},
        {"shuffle": False, "steps_per_epoch": 2},
        {"batch_size": 7, "validation_data": (X[:1], Y[:1])},
        {"batch_size": 50, "validation_data": (X, Y, WEIGHTS), "validation_batch_size": 3},
    ],
    ids=str,
)
def test_options_of_fit_are_shared(options):
    check(4, **options)


def test_generators_that_end_on_one_rank_are_told_on_all():
    def work():
        batches = [(X[:16], Y[:16])] * (3 - tf.distribute.rank())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"the next batch has \[16, 0\] rows on the ranks"):
            trained({}, x=iter(batches), y=None, batch_size=None, epochs=1)
        return True

    assert on_ranks(2, work) == [True, True]


@pytest.mark.parametrize(("rows", "size"), [(48, 16), (50, 10)], ids=["rows", "batches"])
def test_arrays_that_are_not_the_same_on_all_ranks_are_refused_before_the_first_step(rows, size):
    def work():
        given, batch_size = (rows, size) if tf.distribute.rank() else (50, 16)
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"on the ranks are 50 and 4; {rows} and"):
            trained({}, x=X[:given], y=Y[:given], batch_size=batch_size)
        return True

    assert on_ranks(2, work) == [True, True]


@pytest.mark.parametrize("options", [{"sample_weight": WEIGHTS}, {"x": X.astype(int)}], ids=["weights", "dtype"])
def test_arrays_of_another_kind_on_a_rank_are_refused_before_the_first_step(options):
    def work():
        rank = tf.distribute.rank()
        said = rf"on rank {rank} the rows of the data are \w+\[6\], int64\[\].*, on the ranks \[{1 - rank}\] others"
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            trained({}, **(options if rank else {}))
        return True

    assert on_ranks(2, work) == [True, True]


def test_ranks_may_bring_rows_of_their_own():
    starts = (0, 16, 32)
    batches = lambda rank, size: [np.add(start, list(tf.distribute.rows_of(16, rank, size))) for start in starts]

    def work(options, rank=0, size=1):
        data = [(X[rows], Y[rows]) for rows in batches(rank, size)]
        dataset = Dataset.from_generator(lambda: iter(data), output_types=("float32", "int64"))
        model, history = trained(options, x=dataset, y=None, batch_size=None, epochs=2)
        return model, history, model.predict(X[batches(rank, size)[0]], batch_size=4, verbose=0)

    expected = work(None)
    found = on_ranks(3, lambda: work({"auto_shard_dataset": False}, tf.distribute.rank(), 3))
    for one in found:
        assert_close(one[:2], expected[:2])
        assert_same(one[:2], found[0][:2])


def test_the_epoch_ends_with_the_rows_of_the_first_rank_that_has_no_more():
    def work():
        count = 3 if tf.distribute.rank() == 0 else 2
        model, _ = trained({"auto_shard_dataset": False}, x=X[: 8 * count], y=Y[: 8 * count], batch_size=8, epochs=2)
        return int(model.optimizer.iterations)

    assert on_ranks(2, work) == [4, 4]


def test_arrays_of_other_lengths_of_each_rank_weigh_by_their_rows():
    parts = [slice(0, 11), slice(11, 16)]
    expected = trained(None, x=X[:16], y=Y[:16], shuffle=False)

    def work():
        part = parts[tf.distribute.rank()]
        return trained({"auto_shard_dataset": False}, x=X[part], y=Y[part], shuffle=False)

    for one in on_ranks(2, work):
        assert_close(one, expected)


def test_a_dataset_for_a_custom_loop_holds_the_rows_of_this_rank():
    def work():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        assert strategy.num_replicas_in_sync == 3 and strategy.cluster_resolver.task_type == "worker"
        data = strategy.experimental_distribute_dataset(Dataset.range(20).batch(8))
        found = [batch.numpy().tolist() for batch in data]
        total = strategy.reduce("SUM", tf.constant([float(sum(batch)) for batch in found]), axis=0)
        return strategy.cluster_resolver.task_id, found, float(total), float(strategy.reduce("MEAN", 1.0 * len(found)))

    for rank, (number, batches, total, mean) in enumerate(on_ranks(3, work)):
        rows = [list(tf.distribute.rows_of(size, rank, 3)) for size in (8, 8, 4)]
        assert (number, total, mean) == (rank, 190.0, 3.0)
        assert batches == [[start + row for row in own] for start, own in zip((0, 8, 16), rows, strict=True)]
