"""Training of the boundary network: labels, split, loss, noise, patience, stopping, resuming, figures."""

import json
import signal

import numpy as np
import pytest

from airworthy.cli.learning.train_boundary import main
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning
from airworthy.gates.labels import situations
from airworthy.gates.labels.candidates import candidates, fastest
from airworthy.gates.planner.contract import FIELDS, PAPER_RANGES
from airworthy.gates.planner.network import Boundary
from airworthy.gates.training import BoundaryOptions, BoundaryRunOptions, LabelTable, read_labels, train_boundary
from airworthy.gates.training.data import rows_of, split_shares
from airworthy.gates.training.metrics import SAFE_SIGNS, Skew, kept_limit, loss_of, metrics_of, safe_error, torch_loss

torch = pytest.importorskip("torch")
RANGES = np.array(PAPER_RANGES)
QUICK = BoundaryRunOptions(device="cpu", threads=1)
SMALL = BoundaryOptions(epochs=4, batch=64)


def smooth_labels(count=400, seed=0):
    """Labels that a network learns at once, for situations off the grid."""
    share = np.random.default_rng(seed).random((count, 8))
    labels = np.stack([0.8 + 0.6 * share[:, 0], 1.0 + 0.5 * share[:, 2]], axis=1)
    return LabelTable(np.arange(count), RANGES[:, 0] + share * (RANGES[:, 1] - RANGES[:, 0]), labels, np.ones(count, bool))


def analytic(index):
    """The fastest admissible candidate of grid situations."""
    rows = situations.PAPER.situations(index)
    found = candidates(rows)
    choice, at = fastest(found), np.arange(len(rows))
    labels = np.stack([found.v[at, choice], found.t0[at, choice]], axis=1)
    labels[choice < 0] = np.nan
    return LabelTable(index, rows, labels, choice >= 0, limit=(2.0, 0.3))


def write_labels(folder, table, rows_per_file=150):
    import pyarrow as pa
    from pyarrow import parquet

    from airworthy.gates.labels.options import SearchOptions

    columns = {name: table.situations[:, k] for k, name in enumerate(FIELDS)}
    columns |= {"v": table.labels[:, 0], "t0": table.labels[:, 1], "feasible": table.feasible, "index": table.index}
    folder.mkdir(exist_ok=True)
    for k in range(0, len(table.index), rows_per_file):
        part = {name: values[k : k + rows_per_file] for name, values in columns.items()}
        parquet.write_table(pa.table(part), folder / f"labels-{k // rows_per_file:05d}.parquet")
    (folder / "gates.json").write_text(json.dumps({"grid": "paper", "options": SearchOptions().described()}))
    return folder


# ---- labels -----------------------------------------------------------------------------------------------------------------


def test_search_and_network_agree_on_fields_and_ranges():
    assert situations.FIELDS == FIELDS
    assert np.array_equal(situations.RANGES, RANGES)


def test_labels_are_read_in_the_order_of_their_numbers(tmp_path):
    table = analytic(np.arange(200))
    found = read_labels(write_labels(tmp_path / "labels", table, rows_per_file=70))
    assert found.digest == table.digest
    assert (found.speed_max, found.t_max, found.limit) == (2.0, 2.0, (2.0, 0.3))
    mixed = np.random.default_rng(0).permutation(200)
    again = LabelTable(*(getattr(table, name)[mixed] for name in ("index", "situations", "labels", "feasible")))
    assert again.digest == table.digest


def test_hostile_labels_are_refused_in_a_sentence(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    table = smooth_labels(40)
    with pytest.raises(AssetError, match="does not hold labels"):
        read_labels(tmp_path)
    folder = write_labels(tmp_path / "labels", table)
    path = folder / "labels-00000.parquet"
    whole = parquet.read_table(path)

    def refused(said):
        with pytest.raises(AssetError, match=said) as caught:
            read_labels(folder)
        assert "\n" not in str(caught.value)

    path.write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    refused("not a Parquet file that can be read")
    parquet.write_table(whole.drop_columns(["t0"]), path)
    refused("no column 't0'")
    parquet.write_table(whole.set_column(0, "v_prev", pa.array([5.0] * 40)), path)
    refused("v_prev outside of its range")
    parquet.write_table(whole.set_column(0, "v_prev", pa.array(["x"] * 40)), path)
    refused("not a Parquet file that can be read")
    parquet.write_table(pa.concat_tables([whole, whole]), path)
    refused("number twice")
    manifest = json.loads((folder / "gates.json").read_text())
    parquet.write_table(whole, path)
    for files, said in (
        ({"labels-00000.parquet": {"sha256": "0" * 64}}, "changed or damaged"),
        ({"labels-00000.parquet": 3}, "no checksum"),
        ({"../labels-00000.parquet": {"sha256": "0" * 64}}, "expected labels"),
        ({"labels-00009.parquet": {"sha256": "0" * 64}}, "labels-00009"),
    ):
        (folder / "gates.json").write_text(json.dumps(manifest | {"files": files}))
        refused(said)
    (folder / "gates.json").write_text(json.dumps(manifest | {"complete": False}))
    refused("is not finished")
    (folder / "gates.json").write_text(json.dumps(manifest))
    path.unlink()
    refused("is not finished")
    (folder / "gates.json").write_text("[]")
    refused("not a table")


def test_the_split_is_a_function_of_the_number_alone():
    share = split_shares(np.arange(129_600))
    # Three standard deviations of a binomial: 293 rows of the first part.
    assert abs(np.count_nonzero(share < 0.92) - 119_232) < 293
    assert abs(np.count_nonzero(share >= 0.96) - 5_184) < 212
    assert np.array_equal(share[[5, 3]], split_shares([5, 3]))
    assert share.min() >= 0.0
    assert share.max() < 1.0
    # Published first value of SplitMix64 with state 0.
    assert split_shares([0])[0] == (0xE220A8397B1DCDAF >> 11) * 2.0**-53


def test_the_papers_split_holds_back_what_ours_watches_and_tests():
    table = smooth_labels(2000)
    ours, paper = rows_of(table, BoundaryOptions()), rows_of(table, BoundaryOptions(split="paper"))
    assert np.array_equal(ours.inputs, paper.inputs)
    assert paper.counts["watched"] == paper.counts["test"] == ours.counts["watched"] + ours.counts["test"]
    assert sum(ours.counts[name] for name in ("train", "watched", "test")) == 2000


def test_situations_without_a_label_and_long_times_are_counted():
    # Fast arrivals at sharp turns: long times, and some without any candidate.
    table = analytic(np.arange(117_600, 118_200))
    rows = rows_of(table, BoundaryOptions())
    assert rows.counts["infeasible"] == np.count_nonzero(~table.feasible) > 0
    assert rows.counts["clipped"] == np.count_nonzero(table.labels[table.feasible, 1] > 2.0) > 0
    assert rows.labels.max() <= 1.0
    assert np.isfinite(rows.labels).all()
    assert sum(rows.counts[name] for name in ("train", "watched", "test")) == table.feasible.sum()
    longer = rows_of(table, BoundaryOptions(t_max=2.5))
    assert longer.counts["clipped"] == 0
    assert longer.scales == (2.0, 2.5)


def test_labels_faster_than_the_output_are_refused():
    with pytest.raises(AirworthyError, match=r"up to 1\.39.* end at 1"):
        rows_of(smooth_labels(), BoundaryOptions(speed_max=1.0))
    with pytest.raises(AirworthyError, match="no labelled situations"):
        rows_of(smooth_labels(3), BoundaryOptions())


# ---- loss, noise, network ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [Skew(), Skew(1.0, 1.0), Skew(0.5, 3.0, 4.0, 0.2)])
def test_the_loss_in_torch_is_its_twin(skew):
    draws = np.random.default_rng(3)
    y, predicted = draws.random((50, 2)), draws.random((50, 2))
    signs, parameter = torch.tensor(SAFE_SIGNS, dtype=torch.float64), torch.tensor(predicted, requires_grad=True)
    loss = torch_loss(torch.tensor(y), parameter, signs, skew)
    assert float(loss.detach()) == pytest.approx(loss_of(safe_error(y, predicted, skew.eps), skew).mean(), rel=1e-13)
    loss.backward()
    step = 1e-6  # truncation of the central difference: step^2 times a third derivative of order 1e3, over 100 items
    for at in ((0, 0), (7, 1)):
        off = np.zeros_like(predicted)
        off[at] = step
        up, down = (loss_of(safe_error(y, predicted + s * off, skew.eps), skew).mean() for s in (1, -1))
        assert float(parameter.grad[at]) == pytest.approx((up - down) / (2 * step), abs=1e-8)


def test_noise_follows_its_law():
    from airworthy.gates.training.run import BoundaryRun

    rows = rows_of(smooth_labels(6000), BoundaryOptions())
    for noise_on, spread in (("scaled", np.ones(8)), ("physical", 1.0 / rows.spans)):
        run = BoundaryRun(rows, BoundaryOptions(noise_on=noise_on, seed=5), torch.device("cpu"))
        x, y = (tensor.numpy() for tensor in run._drawn())
        order = np.lexsort(y.T)
        found = x[order] - rows.inputs[np.lexsort(rows.labels.T)]  # labels are all different: they tell the rows
        # Mean square of u n is 1/3; of 44,000 products it is known to about 1 %, of a field's 5,500 to 3 %.
        np.testing.assert_allclose(np.sqrt((found**2).mean(axis=0)), 0.1 * spread / 3**0.5, rtol=0.1)
        assert abs((found / spread).mean()) < 0.002
        # One u per row: squares of two fields go together (correlation of u^2 with itself: 4 / 21 of these products).
        pair = (found[:, 0] ** 2, found[:, 1] ** 2)
        assert 0.1 < np.corrcoef(*pair)[0, 1] < 0.3
        run.epoch += 1
        assert not np.array_equal(x, run._drawn()[0].numpy())


def test_patience_counts_losses_below_zero(monkeypatch):
    from airworthy.gates.training.run import BoundaryRun

    losses = iter([0.5, -0.001, -0.002, -0.0015, -0.0019, -0.0020001, -0.002, -0.001, 0.0, 1.0])
    monkeypatch.setattr(BoundaryRun, "watched_loss", lambda self: next(losses))
    run = BoundaryRun(rows_of(smooth_labels(), SMALL), BoundaryOptions(batch=400, patience=3), torch.device("cpu"))
    while not run.finished:
        run.learn()
    assert (run.epoch, run.notes["best_epoch"], run.notes["best_loss"]) == (9, 6, -0.0020001)


def test_numbers_that_become_infinite_end_it(monkeypatch):
    from airworthy.gates.training.run import BoundaryRun

    monkeypatch.setattr(BoundaryRun, "watched_loss", lambda self: float("nan"))
    run = BoundaryRun(rows_of(smooth_labels(), SMALL), SMALL, torch.device("cpu"))
    with pytest.raises(AirworthyError, match="not finite any more: lower the rate"):
        run.learn()


def test_the_schedule_ends_where_the_specification_says():
    options = BoundaryOptions()
    assert [options.rate_of(k) for k in (0, 49, 50)] == [0.01, 0.01, 0.008]
    # The twentieth value, of epochs 950 to 999, and the one behind them, which is the printed 1.15e-4.
    assert options.rate_of(999) == pytest.approx(0.01 * 0.8**19)
    assert options.rate_of(1000) == pytest.approx(0.00011529215046068484, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"rate": 0.0}, "rate"),
        ({"dropout": 1.0}, "dropout"),
        ({"split": "x"}, "Unknown split 'x'"),
    ],
)
def test_options_are_checked(given, said):
    with pytest.raises(AirworthyError, match=said):
        BoundaryOptions(**given)


# ---- whole trainings --------------------------------------------------------------------------------------------------------


def test_it_learns_and_leans_to_the_safe_side(tmp_path):
    options = BoundaryOptions(epochs=25, batch=128, rate=0.003, noise=0.0, dropout=0.0)
    done = train_boundary(smooth_labels(), tmp_path / "net", options, QUICK, "airworthy train boundary labels", quiet=True)
    errors = done.figures["errors"]["train"]
    assert errors["loss"] < 0.0  # what only small errors on the safe side have
    assert errors["v"]["percent_mean"] < 0.0 < errors["t0"]["percent_mean"]
    assert errors["v"]["unsafe_beyond"]["5"] < 0.5
    table = smooth_labels()
    found = metrics_of(table.labels, Boundary.read(done.folder).predict(table.situations), (2.0, 2.0))
    assert found["v"]["rms"] < 0.1
    page = (done.folder / "report.html").read_text()
    assert "least: -0.01306" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "Unsafe errors weigh 2.5 times" in page
    assert page.count("<svg") == 4


def test_torch_and_the_runner_agree():
    from airworthy.gates.planner.contract import BoundaryContract
    from airworthy.gates.training.run import BoundaryNet

    model, table = BoundaryNet(4), smooth_labels(50)
    rows = rows_of(smooth_labels(50), BoundaryOptions(split="paper"))
    network = Boundary(BoundaryContract(), {key: value.numpy() for key, value in model.state_dict().items()})
    with torch.no_grad():
        predicted = 2.0 * model(torch.from_numpy(rows.inputs)).numpy()
    # Two float32 evaluations of sums of up to 512 terms.
    np.testing.assert_allclose(network.predict(rows.parts["train"].situations), predicted, rtol=0.0, atol=2e-6)
    assert len(table.index) == 50


NAMES = ("weights.safetensors", "weights_last.safetensors", "contract.json", "training.jsonl")


def test_a_stopped_training_gives_the_same_bytes(tmp_path, monkeypatch, capsys):
    """Stopped by Ctrl-C in the middle of an epoch, then by SIGTERM, then finished, by the command."""
    from airworthy.gates.training.run import BoundaryRun

    labels = write_labels(tmp_path / "labels", smooth_labels())
    arguments = [str(labels), "--epochs", "4", "--batch", "64", "--threads", "1", "--device", "cpu", "--json"]
    assert main([*arguments, "--out", str(tmp_path / "whole")]) == 0
    learn, stops = BoundaryRun.learn, {1: signal.SIGINT, 3: signal.SIGTERM}

    def interrupted(self, stopped):
        asked = iter(range(100))

        def ask():
            if next(asked) == 2 and self.epoch in stops:
                signal.raise_signal(stops.pop(self.epoch))
            return stopped()

        return learn(self, ask)

    monkeypatch.setattr(BoundaryRun, "learn", interrupted)
    out = [*arguments, "--out", str(tmp_path / "parts")]
    assert [main(out), main(out), main(out)] == [130, 143, 0]
    assert not stops
    assert "goes on from there" in capsys.readouterr().err
    for name in NAMES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert len((tmp_path / "parts" / "training.jsonl").read_text().splitlines()) == 4
    assert not list((tmp_path / "parts").glob("checkpoints/*"))
    # Once more: nothing is learnt again.
    assert main(out) == 0


def test_a_run_out_of_minutes_says_so_and_goes_on(tmp_path):
    first = train_boundary(smooth_labels(), tmp_path / "net", SMALL, BoundaryRunOptions("cpu", 1, minutes=1e-9), quiet=True)
    assert (first.finished, first.epochs) == (False, 1)
    assert train_boundary(smooth_labels(), tmp_path / "net", SMALL, QUICK, quiet=True).finished
    (tmp_path / "net" / "training.jsonl").unlink()
    with pytest.warns(AssetWarning, match="training.jsonl' is missing or empty"):
        assert train_boundary(smooth_labels(), tmp_path / "net", SMALL, QUICK, quiet=True).finished


def test_another_training_is_not_written_over(tmp_path):
    train_boundary(smooth_labels(), tmp_path, BoundaryOptions(epochs=1, batch=400), QUICK, quiet=True)
    with pytest.raises(AirworthyError, match="seed was 0, not 1"):
        train_boundary(smooth_labels(), tmp_path, BoundaryOptions(epochs=1, batch=400, seed=1), QUICK, quiet=True)
    with pytest.raises(AirworthyError, match="labels were others"):
        train_boundary(smooth_labels(seed=9), tmp_path, BoundaryOptions(epochs=1, batch=400), QUICK, quiet=True)


# ---- figures ----------------------------------------------------------------------------------------------------------------


def test_shares_on_the_unsafe_side():
    labels = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 3.0]])
    predicted = np.array([[1.06, 0.88], [0.80, 0.97], [1.11, 1.30], [0.2, 2.0]])
    found = metrics_of(labels, predicted, (2.0, 2.0))
    assert found["v"]["unsafe_beyond"] == {"0": 2 / 3, "5": 2 / 3, "10": 1 / 3}
    assert (found["v"]["zero_labels"], found["v"]["median_at_zero_labels"]) == (1, 0.2)
    # The last time is clipped to 2 s: it is met.
    assert found["t0"]["unsafe_beyond"] == {"0": 0.5, "5": 0.25, "10": 0.25}
    assert found["either_beyond"] == {"0": 0.75, "5": 0.5, "10": 0.5}


def test_the_joint_limit_is_the_searchs_own():
    rows = situations.PAPER.situations(np.random.default_rng(2).integers(0, situations.PAPER.size, 12))
    found = candidates(rows)
    for k, row in enumerate(rows):
        pairs = np.stack([found.v[k], found.t0[k]], axis=1)
        assert np.array_equal(kept_limit(np.repeat(row[None], 70, axis=0), pairs, (2.0, 0.3)), found.admissible[k])
