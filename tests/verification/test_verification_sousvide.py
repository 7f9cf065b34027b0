"""The figures of `airworthy verify --only sousvide`: they hold, and would not if what they measure were wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli import verify
from airworthy.cli.verify import VerifyConfig, main
from airworthy.core.idle_options import refuse_idle
from airworthy.learning.datasets import DatasetConfig, ExpertDataset
from airworthy.learning.datasets.config import IDLE_RULES
from airworthy.pilots.svnet.contract import read_policy, write_policy
from airworthy.tasks import TrackingProtocol
from airworthy.verification import Figure, learning
from airworthy.verification import capture as markers
from airworthy.verification.learning import expert, policy
from airworthy.verification.published import zero


def failed(figures: Iterator[Figure]) -> list[str]:
    """Names of those that are not as they must be; they are all told apart by their names."""
    found = list(figures)
    assert found
    assert len({figure.name for figure in found}) == len(found)
    return [figure.name for figure in found if not figure.passed]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ExpertDataset:
    """120 images of red balls; not to be changed."""
    return expert.made_small(tmp_path_factory.mktemp("small"))


# ---- 1 to 3 -------------------------------------------------------------------------------------------------------------


def test_dynamics() -> None:
    assert failed(expert.dynamics_figures()) == []


def test_other_gravity_or_quaternions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """For another k_th than the vehicle's, hover rises. In another precision, quaternions are off."""
    with monkeypatch.context() as patch:
        patch.setattr(expert, "_share_of_hover", lambda: 1.144 * 9.81 / 27.5)
        assert not next(expert.dynamics_figures()).passed
    flight = expert._twin_flight
    monkeypatch.setattr(expert, "_twin_flight", lambda *given: [state.astype(np.float32) for state in flight(*given)])
    assert [figure.passed for figure in islice(expert.dynamics_figures(), 2)] == [True, False]


def test_planner_and_optima(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(expert.planner_figures(data_dir / "sousvide")) == []
    monkeypatch.setattr(expert, "PROBLEMS", 100)
    # How fast it solves is a matter of the machine, and of what else runs there.
    found = failed(expert.expert_figures(data_dir / "sousvide" / "mpc_reference.json"))
    assert [name for name in found if "warm solves" not in name] == []


@pytest.mark.parametrize(
    ("column", "message"), [(2, "positions"), (6, "velocities"), (7, "quaternions"), (11, "thrust shares"), (14, "body rates")]
)
def test_a_spoilt_row_of_a_course_is_found(data_dir: Path, tmp_path: Path, column: int, message: str) -> None:
    for name in expert.COURSES:
        shutil.copyfile(data_dir / "sousvide" / f"reference_{name}.csv", tmp_path / f"reference_{name}.csv")
    path = tmp_path / "reference_cluttered.csv"
    lines = path.read_text().splitlines()
    values = lines[77].split(",")
    values[column] = str(float(values[column]) + 2e-4)
    lines[77] = ",".join(values)
    path.write_text("\n".join(lines) + "\n")
    (name,) = failed(expert.planner_figures(tmp_path))
    assert message in name


@pytest.mark.parametrize(("spoilt", "message"), [("cost", "cost off"), ("u0", "first command off")])
def test_a_spoilt_optimum_is_found(data_dir: Path, tmp_path: Path, spoilt: str, message: str) -> None:
    table = json.loads((data_dir / "sousvide" / "mpc_reference.json").read_text())
    problem = table["problems"][5]
    problem[spoilt] = problem[spoilt] * 1.0003 if spoilt == "cost" else [value + 0.02 for value in problem[spoilt]]
    path = tmp_path / "mpc_reference.json"
    path.write_text(json.dumps(table))
    (name,) = failed(expert._optima(path))
    assert message in name


def test_a_solver_that_is_not_at_the_optimum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Believing(expert.MpcSolver):
        """Takes drones for 5 % stronger, unless it is to be the judge."""

        def solve(self, start: Any, full: Any, row: Any, *rest: Any, **options: Any) -> Any:
            return super().solve(start, full if self.config.tolerance == 0.0 else 1.05 * full, row, *rest, **options)

    monkeypatch.setattr(expert, "MpcSolver", Believing)
    # How fast it solves is a matter of the machine, and of what else runs there.
    names = [name for name in failed(expert.warm_figures(256)) if "warm solves" not in name]
    assert ["cost off" in name or "first command off" in name for name in names] == [True, True]


# ---- 4 and 5 ------------------------------------------------------------------------------------------------------------


def test_counts_keep_rate_and_closing(tmp_path: Path) -> None:
    few = DatasetConfig(view="none", per_second=1.0, repetitions=2)
    assert failed(expert.published_set_figures(tmp_path / "a", few, {"rollouts": 30, "pairs": 1_200})) == []
    assert failed(expert.closing_figures(60)) == []
    # A second is too short to come back, and 20 pairs are not 40.
    short = replace(few, length=1.0)
    missed = failed(expert.published_set_figures(tmp_path / "b", short, {"rollouts": 30, "pairs": 1_200}))
    assert [name.partition(": ")[2] for name in missed] == ["pairs", "roll-outs kept"]


def test_an_expert_that_does_not_come_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert, "SynthesisConfig", lambda: DatasetConfig(length=1.0))
    assert len(failed(expert.closing_figures(100))) == 2


def test_what_is_made_without_images_says_nothing_of_how_they_look() -> None:
    seen = replace(expert.SMALL, scene="garage", light=(0.5, 2.0), image_noise=3.0)
    plain = expert.without_images(seen)
    refuse_idle(plain, IDLE_RULES)
    assert (plain.view, plain.seed, plain.courses) == ("none", seen.seed, seen.courses)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(small: ExpertDataset, tmp_path: Path) -> None:
    assert failed(expert.repetition_figures(small, tmp_path)) == []
    path = tmp_path / "by_two" / "shard_00001" / "images.npy"
    spoilt = bytearray(path.read_bytes())
    spoilt[-7] ^= 1
    path.write_bytes(spoilt)
    assert expert._different(expert._contents(small.folder), expert._contents(tmp_path / "by_two")) == 1


def test_image_and_state_are_of_one_instant(small: ExpertDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(expert.instant_figures(small)) == []
    monkeypatch.setattr(small, "sensed", np.roll(small.sensed, -1, axis=0))
    assert [name for name in failed(expert.instant_figures(small)) if "own state" in name]


def test_an_interrupted_data_set_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = expert.synthesize_dataset

    def stopped(*given: Any, **options: Any) -> Any:
        return replace(made(*given, **options), interrupted=True)

    monkeypatch.setattr(expert, "synthesize_dataset", stopped)
    few = DatasetConfig(view="none", per_second=1.0, repetitions=1)
    with pytest.raises(KeyboardInterrupt):
        list(expert.published_set_figures(tmp_path, few))


# ---- 6 ------------------------------------------------------------------------------------------------------------------


def test_marker_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "SEEDS", 3)
    assert failed(markers.marker_figures()) == []
    monkeypatch.setattr(markers, "POSITION_NOISE", 0.01)
    monkeypatch.setattr(markers, "CORNER_NOISE", 2.0)
    assert len(failed(markers.marker_figures())) == 3  # what is turned follows from places spread over 6 m still


# ---- 7 ------------------------------------------------------------------------------------------------------------------


def test_sizes_and_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SECONDS", 0.0)
    assert failed(policy.size_figures()) == []
    assert failed(policy.runner_figures()) == []
    shapes = policy.tensor_shapes
    monkeypatch.setattr(policy, "tensor_shapes", lambda name: {**shapes(name), "command.2.bias": (5,)})
    assert len(failed(policy.size_figures())) == 2 + len(policy.TOTALS)


def test_a_runner_that_differs_from_its_twin_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = policy.svnet_twin

    def other(contract: Any, weights: Any, reading: Any) -> Any:
        found = twin(contract, weights, reading)
        return replace(found, command=found.command + np.float32(1e-4))

    monkeypatch.setattr(policy, "SECONDS", 0.0)
    monkeypatch.setattr(policy, "svnet_twin", other)
    assert len(failed(policy.runner_figures())) == 2


def test_lateral_position_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(policy.place_figures()) == []

    class Knowing(policy.SvNetPilot):
        """Is told where it is, and puts it where the velocity belongs."""

        @property
        def observes(self) -> tuple[str, ...]:
            return (*super().observes, "position")

        def _state(self, observation: Any, new: Any) -> Any:
            state = super()._state(observation, new)
            state[:, 3] += 1e-3 * observation["position"][:, 0]
            return state

    monkeypatch.setattr(policy, "SvNetPilot", Knowing)
    assert [name for name in failed(policy.place_figures()) if "away" in name]


# ---- 8 and 9 ------------------------------------------------------------------------------------------------------------


def test_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(policy.formula_figures()) == []
    check = policy.check_formula
    # As the paper prints it: (c + z_B . f_add) / f.
    monkeypatch.setattr(
        policy,
        "check_formula",
        lambda *given: [replace(item, predicted=(24.1 + (item.predicted - 24.1)) / 0.41) for item in check(*given)],
    )
    assert len(failed(policy.formula_figures())) == 1


@pytest.mark.slow
def test_the_history_network_of_the_shipped_policy(tmp_path: Path) -> None:
    folder = policy.usable_policy()
    if folder is None:
        pytest.skip("no policy is shipped")
    assert failed(policy.network_figures(folder, flights=4)) == []
    contract, weights = read_policy(folder)
    # It always says the same: neither better than the mean, nor moved by a payload.
    same = {key: np.zeros_like(value) if key.startswith("history.") else value for key, value in weights.items()}
    same["history.estimate.bias"] = np.array([1.0, 5.0], np.float32)
    spoilt = write_policy(tmp_path / "spoilt", contract, same)
    assert len(failed(policy.network_figures(spoilt, flights=2))) == 3


def test_a_frozen_history_network_stays(small: ExpertDataset) -> None:
    pytest.importorskip("torch")
    assert failed(policy.frozen_figures(small, ("sv_net",))) == []  # type: ignore[arg-type]
    # Without a history step it learns with the rest: that its bytes change is found.
    names = failed(policy.frozen_figures(small, ("no_pretrain",)))  # type: ignore[arg-type]
    assert [name for name in names if "other bytes after the command step" in name]


# ---- 10 -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "count"),
    [
        (TrackingProtocol(), 0),
        (TrackingProtocol(yaw_error_max_rad=1.0), 1),
        (TrackingProtocol(proximity_m=0.5), 1),
        (TrackingProtocol(collision_start_m=0.05), 3),
        (TrackingProtocol(path_distance_max_m=9.0, end_radius_m=9.0), 2),
    ],
)
def test_metrics(monkeypatch: pytest.MonkeyPatch, protocol: TrackingProtocol, count: int) -> None:
    """With the thresholds of section 9 they hold, with others they do not."""
    evaluate = policy.evaluate_tracking
    monkeypatch.setattr(policy, "evaluate_tracking", lambda table, line: evaluate(table, line, protocol))
    assert len(failed(policy.metric_figures())) == count


# ---- the command --------------------------------------------------------------------------------------------------------


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setitem(verify.GROUPS, "sousvide", lambda everything: iter([zero("made up", 0)]))
    monkeypatch.setattr(learning, "has_torch", lambda: False)
    monkeypatch.setattr(learning, "usable_policy", lambda: None)
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path))
    assert main(["--only", "sousvide"]) == 0
    said = capsys.readouterr().out
    assert "has no folder 'sousvide'" in said
    assert "torch is not installed" in said
    assert "extra 'learn'" in said
    assert "ships with the package is missing" in said
    assert not [line for line in verify.left_out(VerifyConfig(only=("sensors",))) if "torch" in line]


def test_a_policy_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(policy, "shipped_policy", lambda: tmp_path)
    assert policy.usable_policy() is None


@pytest.mark.slow
def test_the_whole_group(capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    """In about twenty seconds."""
    assert main(["--only", "sousvide", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len({figure["name"] for figure in found}) == len(found) >= 74
    items = {figure["name"].split(",")[0] for figure in found if figure["name"].startswith("SOUS VIDE")}
    assert items >= {f"SOUS VIDE {number}" for number in (1, 2, 3, 4, 5, 6, 7, 10)}
