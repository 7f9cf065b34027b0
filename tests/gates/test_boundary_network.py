"""The boundary network without torch, its folder, and the two kinds of errors."""

import json

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256
from airworthy.gates.planner.contract import (
    FIELDS,
    PAPER_RANGES,
    SLOPES,
    BoundaryContract,
    contract_of,
    network_folder,
    read_network,
    tensor_bytes,
    tensor_shapes,
    write_network,
)
from airworthy.gates.planner.network import Boundary, Skew, loss_minimum, loss_of, percent_error, safe_error, unsafe_percent
from airworthy.pilots.network_files import write_sealed

RANGES = np.array(PAPER_RANGES)
# Values of eq. 9 as the specification prints them (reference_vectors.json), nine decimals.
LOSS = {
    -0.3: 0.560162267,
    -0.1: 0.124696402,
    -0.05: 0.047144306,
    0.0: 0.0,
    0.05: -0.012855694,
    0.1: 0.004696402,
    0.15: 0.04338128,
    0.3: 0.200162267,
}


def random_weights(seed=0):
    draws = np.random.default_rng(seed)
    return {
        name: (draws.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32) for name, shape in tensor_shapes().items()
    }


def situations(count, seed=1):
    return RANGES[:, 0] + np.random.default_rng(seed).random((count, 8)) * (RANGES[:, 1] - RANGES[:, 0])


@pytest.fixture(scope="module")
def network():
    return Boundary(BoundaryContract(), random_weights())


@pytest.fixture
def folder(tmp_path):
    return write_network(tmp_path / "net", BoundaryContract(notes="a test"), random_weights())


# ---- errors and loss --------------------------------------------------------------------------------------------------------


def test_the_loss_has_the_printed_values():
    np.testing.assert_allclose(loss_of(list(LOSS)), list(LOSS.values()), rtol=0.0, atol=6e-10)  # nine decimals are printed


def test_the_least_loss_is_on_the_safe_side_and_below_zero():
    at, value, crossing = loss_minimum()
    assert (round(at, 4), round(value, 5), round(crossing, 4)) == (0.0443, -0.01306, 0.0916)
    found = scipy.optimize.minimize_scalar(loss_of, bounds=(-1.0, 1.0), method="bounded", options={"xatol": 1e-9})
    assert at == pytest.approx(found.x, abs=1e-6)  # a minimum is flat: values agree to eps long before places do
    assert value <= found.fun + 1e-15
    assert loss_of(crossing) == pytest.approx(0.0, abs=1e-15)
    # The slope at zero is (0.8 - 2.0) / 2; the central difference errs by h^2.
    assert (loss_of(1e-5) - loss_of(-1e-5)) / 2e-5 == pytest.approx(-0.6, abs=1e-8)


@pytest.mark.parametrize(("safe", "unsafe"), [(1.0, 1.0), (0.5, 3.0), (2.0, 0.8)])
def test_the_minimum_of_other_weights(safe, unsafe):
    skew = Skew(safe, unsafe)
    at, value, crossing = loss_minimum(skew)
    around = np.linspace(-0.5, 0.5, 20_001)
    assert value <= loss_of(around, skew).min() + 1e-15
    assert np.sign(at) == np.sign(crossing) == np.sign(unsafe - safe)
    assert loss_of(crossing, skew) == pytest.approx(0.0, abs=1e-15)


def test_extreme_errors_do_not_overflow():
    with np.errstate(all="raise"):
        assert loss_of([-1e6, 1e6]).tolist() == [2e6, 0.8e6]


def test_safe_errors_are_above_zero_for_too_slow_and_too_long():
    label, slow_and_long, fast_and_short = [0.5, 0.5], [0.4, 0.6], [0.6, 0.4]
    np.testing.assert_allclose(safe_error(label, slow_and_long), [0.1 / 0.6, 0.1 / 0.6], rtol=1e-15)
    np.testing.assert_allclose(safe_error(label, fast_and_short), [-0.1 / 0.6, -0.1 / 0.6], rtol=1e-15)
    assert safe_error([0.0, 0.5], [0.3, 0.5])[0] == pytest.approx(-3.0)  # -yh / eps


def test_percent_errors_are_of_opposite_sign_for_the_speed():
    label, slow_and_long = [[0.5, 0.5]], [[0.4, 0.6]]
    np.testing.assert_allclose(percent_error(label, slow_and_long), [[-20.0, 20.0]], rtol=1e-14)
    np.testing.assert_allclose(unsafe_percent(percent_error(label, slow_and_long)), [[-20.0, -20.0]], rtol=1e-14)
    assert np.isnan(percent_error([0.0, 1.0], [0.1, 1.0])[0])


@given(st.floats(0.05, 1.0), st.floats(0.0, 1.0), st.floats(0.05, 1.0), st.floats(0.0, 1.0))
def test_what_is_unsafe_in_percent_has_a_safe_error_below_zero(v, v_predicted, t, t_predicted):
    error, unsafe = (
        safe_error([v, t], [v_predicted, t_predicted]),
        unsafe_percent(percent_error([v, t], [v_predicted, t_predicted])),
    )
    assert ((error > 0) == (unsafe < 0)).all()
    assert ((error < 0) == (unsafe > 0)).all()


def test_numbers_of_the_loss_are_checked():
    with pytest.raises(AirworthyError, match=r"unsafe is -1.*above 0"):
        Skew(unsafe=-1.0)
    with pytest.raises(AirworthyError, match=r"Skew\.eps is nan; expected"):
        Skew(eps=float("nan"))


# ---- the network ------------------------------------------------------------------------------------------------------------


def plain(weights, rows):
    """The network as the specification writes it, in double precision."""
    x = (rows - RANGES[:, 0]) / (RANGES[:, 1] - RANGES[:, 0])
    for k, slope in enumerate(SLOPES):
        x = x @ weights[f"layers.{k}.weight"].astype(float).T + weights[f"layers.{k}.bias"]
        x = np.where(x > 0.0, x, slope * x)
    x = x @ weights["layers.4.weight"].astype(float).T + weights["layers.4.bias"]
    return 2.0 / (1.0 + np.exp(-x))


def test_it_has_the_published_number_of_parameters():
    assert sum(int(np.prod(shape)) for shape in tensor_shapes().values()) == 145_282


def test_it_computes_what_is_written(network):
    rows = situations(300)
    # float32: sums of 512 terms of order 0.1, rounding 6e-8 each.
    np.testing.assert_allclose(network.predict(rows), plain(random_weights(), rows), rtol=0.0, atol=5e-6)


def test_bits_do_not_depend_on_the_batch(network):
    rows = situations(600)
    whole = network.predict(rows)
    assert np.array_equal(whole[:40], np.concatenate([network.predict(row) for row in rows[:40]]))
    assert np.array_equal(whole, np.concatenate([network.predict(rows[k : k + 7]) for k in range(0, 600, 7)]))
    assert np.array_equal(whole[::-1], network.predict(rows[::-1]))


def test_queries_outside_are_taken_at_the_edge_and_counted():
    network = Boundary(BoundaryContract(), random_weights())
    rows = np.repeat(RANGES.mean(axis=1)[None], 4, axis=0)
    rows[0, 0], rows[1, 0], rows[1, 3], rows[2, 2] = 1.6, -0.2, 1.0, 1.5 + 1e-12
    edge = rows.copy()
    edge[0, 0], edge[1, 0], edge[1, 3], edge[2, 2] = 1.0, 0.0, np.pi / 4, 1.5
    found = network.predict(rows)
    assert (network.queries, network.clamped) == (4, 2)  # 1e-12 m is rounding
    assert network.clamped_fields == dict.fromkeys(FIELDS, 0) | {"v_prev": 2, "theta0": 1}
    assert np.array_equal(found, network.predict(edge))
    assert (network.queries, network.clamped) == (8, 2)
    outside = network.outside(rows)
    assert outside[0, 0] == pytest.approx(0.6)
    assert outside[1, 0] == pytest.approx(-0.2)
    assert outside[1, 3] == pytest.approx(1.0 - np.pi / 4)
    assert np.count_nonzero(outside) == 3
    network.reset_counts()
    assert (network.queries, network.clamped, sum(network.clamped_fields.values())) == (0, 0, 0)


def test_nothing_is_asked_for_nothing(network):
    assert network.predict(np.zeros((0, 8))).shape == (0, 2)


@pytest.mark.parametrize("rows", [np.zeros((2, 7)), np.zeros((1, 2, 8)), np.zeros(3)])
def test_another_shape_is_refused(network, rows):
    with pytest.raises(AirworthyError, match="shape"):
        network.predict(rows)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(network, value):
    rows = situations(3)
    rows[1, 4] = value
    with pytest.raises(AirworthyError, match="not finite"):
        network.predict(rows)


# ---- its folder -------------------------------------------------------------------------------------------------------------


def test_a_network_comes_back_as_it_was_written(folder, network):
    contract, weights = read_network(folder)
    assert contract == BoundaryContract(notes="a test")
    assert all(np.array_equal(weights[name], array) for name, array in random_weights().items())
    rows = situations(5)
    assert np.array_equal(Boundary.read(folder).predict(rows), network.predict(rows))
    again = write_network(folder.parent / "again", contract, weights)
    for name in ("contract.json", "weights.safetensors"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_other_ranges_and_scales_are_kept(tmp_path):
    ranges = ((0.0, 16.0 / 9.0), *PAPER_RANGES[1:])
    write_network(tmp_path, BoundaryContract(ranges, (4.0, 3.0)), random_weights())
    network = Boundary.read(tmp_path)
    network.predict([1.5, 0.3, 1.0, 0.0, 0.3, 1.0, 0.0, 0.3])
    assert network.clamped == 0
    assert np.array_equal(network.ranges, ranges)
    assert (network.predict(situations(50)) < [4.0, 3.0]).all()


def test_a_name_or_folder_that_is_not_there(tmp_path):
    with pytest.raises(AssetError, match=r"is no folder.*airworthy train boundary"):
        network_folder(tmp_path / "none")
    with pytest.raises(AssetError, match="does not hold a network"):
        Boundary.read(tmp_path)


def test_changed_weights_are_refused(folder):
    path = folder / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(AssetError, match="changed or damaged"):
        read_network(folder)


def forged(folder, data):
    """Weights that the contract vouches for."""
    (folder / "weights.safetensors").write_bytes(data)
    table = json.loads((folder / "contract.json").read_text())
    table["weights"]["sha256"] = sha256(data)
    write_sealed(folder / "contract.json", table)


def saved(**changes):
    from safetensors.numpy import save

    weights = random_weights() | changes
    return save({name: array for name, array in weights.items() if array is not None})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a usable safetensors file"),
        (b"\xff" * 64, "not a usable safetensors file"),
        (saved()[:-8], "not a usable safetensors file"),
        (saved(**{"layers.2.bias": None}), "'layers.2.bias' is missing"),
        (saved(more=np.zeros(1, np.float32)), "'more' does not belong there"),
        (saved(**{"layers.4.bias": np.zeros(3, np.float32)}), "has shape"),
        (saved(**{"layers.4.bias": np.zeros(2)}), "is of float64"),
        (saved(**{"layers.4.bias": np.array([0.0, np.nan], np.float32)}), "not finite"),
        (b"\0" * (2 * 1024 * 1024 + 1), "bytes"),
    ],
)
def test_hostile_weights_are_refused_in_a_sentence(folder, data, said):
    forged(folder, data)
    with pytest.raises(AssetError, match=said) as caught:
        read_network(folder)
    assert "\n" not in str(caught.value)


def test_what_does_not_fit_is_not_written(tmp_path):
    with pytest.raises(AirworthyError, match="not finite"):
        tensor_bytes(random_weights() | {"layers.0.bias": np.full(512, 1e300)})
    with pytest.raises(AirworthyError, match="note less"):
        write_network(tmp_path, BoundaryContract(training={"text": "x" * 300_000}), random_weights())
    assert not (tmp_path / "contract.json").exists()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("kind",), "airworthy-svnet", "is not a contract of a boundary network: its kind must be"),
        (("version",), 2, "version must be 1"),
        (("layers", "slopes"), [0.1, 0.1, 0.1, 0.1], r"layers\.slopes\[1\] must be 0\.04, but is 0\.1"),
        (("inputs", 0, "name"), "speed", r"inputs\[0\]\.name must be 'v_prev', but is 'speed'"),
        (("inputs", 0, "unit"), "km/h", r"inputs\[0\]\.unit must be 'm/s', but is 'km/h'"),
        (("inputs", 2, "low"), 1.5, "low below high"),
        (("inputs", 2, "low"), True, r"inputs\[2\]\.low must be a number, but is True"),
        (("inputs", 2, "high"), "1.5", r"inputs\[2\]\.high must be a number, but is '1\.5'"),
        (("outputs", 1, "scale"), 0.0, r"Contract\.scales\[1\] is 0; expected 1e-06 to"),
        (("outputs", 1, "scale"), 1e300, r"Contract\.scales\[1\] is 1e\+300; expected 1e-06 to"),
        (("outputs",), None, "outputs must be a list of 2, but is None"),
        (("weights",), [], "weights must be a table, but is a list of 0"),
        (("weights",), {}, "lacks 'sha256'"),
        (("heading",), "", r"Contract\.heading is ''; expected 1 to 80 letters"),
        (("training",), 3, "training must be a table, but is 3"),
    ],
)
def test_hostile_contracts_are_refused_in_a_sentence(folder, path, value, said):
    table = json.loads((folder / "contract.json").read_text())
    place = table
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    write_sealed(folder / "contract.json", table)
    with pytest.raises(AssetError, match=said) as caught:
        read_network(folder)
    assert "\n" not in str(caught.value)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["layers", "inputs", "outputs", "heading", "weights", "training", "notes", "kind", "version"]), anything)
def test_no_contract_raises_anything_but_an_asset_error(key, value):
    from airworthy.gates.planner.contract import contract_table

    table = contract_table(BoundaryContract(), {"sha256": ""}) | {key: value}
    said = ""
    try:
        contract_of(table, "contract.json")
    except AssetError as error:
        said = str(error)
    assert "\n" not in said
