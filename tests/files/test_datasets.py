"""The named real sets are found where they are promised, and a miss says what to do."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from wellsep import list_datasets, load_dataset


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("WELLSEP_DATA", raising=False)


@pytest.fixture
def small_folder(tmp_path, monkeypatch):
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "tiny.npz", X=images, y=np.array([0, 1], np.int16))
    np.savez(tmp_path / "many.npz", **{"fcps/target/X": np.eye(3)})
    monkeypatch.setenv("WELLSEP_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("digits", (1797, 64), 10),
        ("breast_cancer", (569, 30), 2),
    ],
)
def test_embedded_sets_need_no_folder(no_folder, name, shape, classes):
    data = load_dataset(name)
    assert data.X.shape == shape
    assert data.n_classes == classes
    assert data.source == "scikit-learn"
    assert len(data.feature_names) == shape[1]
    assert len(data.class_names) == classes


def test_names_ignore_case_and_dashes(no_folder):
    assert load_dataset("Breast-Cancer").name == "breast_cancer"


def test_the_record_is_frozen(no_folder):
    data = load_dataset("iris")
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = None


def test_images_keep_their_shape_unless_flattened(small_folder):
    assert load_dataset("tiny").X.shape == (2, 3, 4)
    flat = load_dataset("tiny", flatten=True)
    assert flat.X.shape == (2, 12)
    assert flat.image_shape == (3, 4)
    np.testing.assert_array_equal(flat.X[1], np.arange(12, 24))


def test_return_X_y_gives_two_arrays(small_folder):
    X, y = load_dataset("tiny", return_X_y=True, flatten=True)
    assert X.shape == (2, 12)
    np.testing.assert_array_equal(y, [0, 1])


def test_a_file_without_X_and_y_is_refused(small_folder):
    with pytest.raises(ValueError, match=r"arrays X and y, got many\.npz without them"):
        load_dataset("many")


def test_no_file_outside_the_folder_is_read(small_folder, monkeypatch):
    (small_folder / "inner").mkdir()
    monkeypatch.setenv("WELLSEP_DATA", str(small_folder / "inner"))
    for name in ("../tiny", str(small_folder / "tiny")):
        with pytest.raises(ValueError, match=r"list_datasets\(\)"):
            load_dataset(name)


def test_the_folder_comes_before_scikit_learn(small_folder):
    np.savez(small_folder / "iris.npz", X=np.zeros((2, 1)), y=np.array([0, 1]))
    assert load_dataset("iris").source == "folder"
    assert load_dataset("iris", folder="").source == "scikit-learn"


def test_the_list_names_sources(small_folder):
    names = list_datasets()
    assert names["tiny"] == "folder"
    assert names["iris"] == "scikit-learn"
    assert names["pendigits"] == "openml"
    assert "many" not in names
    assert list(names) == sorted(names)


def test_openml_is_asked_last_and_only_the_test_part_is_kept(no_folder, monkeypatch):
    asked = []

    def fetch(**options):
        asked.append(options)
        pixels = np.arange(12_000, dtype=float).reshape(-1, 1) % 256 * np.ones((1, 784))
        target = np.array([str(i % 10) for i in range(12_000)], dtype=object)
        return SimpleNamespace(data=pixels, target=target, feature_names=["p"] * 784)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    data = load_dataset("mnist_test")
    assert asked[0]["data_id"] == 554
    assert data.source == "openml"
    assert data.X.shape == (10_000, 28, 28)
    assert data.X.dtype == np.uint8
    assert data.X[0, 0, 0] == 2000 % 256
    np.testing.assert_array_equal(data.y[:3], [0, 1, 2])


def test_an_unreachable_openml_says_what_to_do(no_folder, monkeypatch):
    def fetch(**options):
        raise TimeoutError("no route")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(OSError, match=r"no route.*pendigits\.npz.*WELLSEP_DATA"):
        load_dataset("pendigits")


@pytest.mark.parametrize(
    ("name", "options", "error", "sentence"),
    [
        (
            "pendigits",
            {"download": False},
            FileNotFoundError,
            "download must be True to fetch 'pendigits'",
        ),
        ("coil20_32", {}, ValueError, r"coil20_32\.npz.*WELLSEP_DATA"),
        ("irris", {}, ValueError, "did you mean 'iris'"),
        ("no such thing", {}, ValueError, r"list_datasets\(\)"),
        (3, {}, TypeError, "name must be a text"),
    ],
)
def test_a_miss_names_the_remedy(no_folder, name, options, error, sentence):
    with pytest.raises(error, match=sentence):
        load_dataset(name, **options)


def test_a_folder_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("WELLSEP_DATA", "nowhere-at-all")
    with pytest.raises(FileNotFoundError, match=r"WELLSEP_DATA.*nowhere-at-all"):
        load_dataset("iris")


@pytest.mark.parametrize(
    ("name", "shape", "classes", "image"),
    [
        ("coil20_32", (1440, 32, 32), 20, (32, 32)),
        ("optdigits", (5620, 64), 10, (8, 8)),
        ("yeast", (1484, 8), 10, None),
        ("mnist_embeddings10", (70000, 10), 10, None),
    ],
)
def test_the_real_sets_have_the_published_sizes(real_data, name, shape, classes, image):
    data = load_dataset(name)
    assert data.X.shape == shape
    assert len(data.y) == shape[0]
    assert data.n_classes == classes
    assert data.image_shape == image


def test_every_listed_set_of_the_real_folder_loads(real_data):
    sources = list_datasets()
    small = [name for name, source in sources.items() if source == "folder" and "mnist" not in name]
    assert len(small) >= 18
    rows = {name: len(load_dataset(name).X) == len(load_dataset(name).y) for name in small}
    assert all(rows.values()), [name for name, equal in rows.items() if not equal]
