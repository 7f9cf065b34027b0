"""Parts of the visuomotor training, each against what it is said to do: whitening, heads, looks, verdicts, sources."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from airworthy.core.errors import AirworthyError  # noqa: E402
from airworthy.learning.backbone import backbone_weights  # noqa: E402
from airworthy.learning.svnet.lite0 import Lite0Trunk  # noqa: E402
from airworthy.learning.visuomotor.augment import augmented  # noqa: E402
from airworthy.learning.visuomotor.config import JUDGED_SEED, Augmentation, VisuomotorOptions  # noqa: E402
from airworthy.learning.visuomotor.features import VIEW, FrozenTrunk, Whitening, image_scale  # noqa: E402
from airworthy.learning.visuomotor.heads import HeadLearning, Heads, learn_heads, policy_tensors, predicted  # noqa: E402
from airworthy.learning.visuomotor.judging import verdict_of  # noqa: E402
from airworthy.learning.visuomotor.pairs import Pairs  # noqa: E402
from airworthy.learning.visuomotor.sight import Sight  # noqa: E402
from airworthy.learning.visuomotor.step_times import guessed_times  # noqa: E402
from airworthy.learning.visuomotor.training import mean_of_finite  # noqa: E402
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage, read_policy, shipped_policy  # noqa: E402
from airworthy.pilots.svnet.lite0 import lite0_shapes  # noqa: E402
from airworthy.pilots.svnet.network import Reading, SvNetwork  # noqa: E402

CHANNELS = 8
NOTHING = Augmentation(light=0.0, contrast=0.0, paste=0.0, blur=0.0, noise=0.0)


def drawn_pairs(count: int, features: np.ndarray, rng: np.random.Generator) -> Pairs:
    state, history = rng.normal(size=(count, 8)), rng.normal(size=(count, 75))
    command = np.column_stack([features[:, 0, 0, 0], state[:, 1:4]])
    numbers = (state, np.tile(np.arange(18.0), (count, 1)), history, command, command[:, :3])
    return Pairs(features, *(np.asarray(item, np.float32) for item in numbers))


def test_whitened_channels_have_no_correlation() -> None:
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(200, 4, 16)) @ rng.normal(size=(16, 16))).astype(np.float32)
    white = Whitening.of(features, 5)(features).reshape(-1, 5)
    # By definition: mean 0, covariance the unit matrix; float32 sums of 800 rows.
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(white.T @ white / len(white), np.eye(5), atol=1e-3)


def test_a_folded_classifier_does_what_one_behind_the_whitening_does() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(50, 4, 16)).astype(np.float32)
    whitening, weight, bias = Whitening.of(features, 5), rng.normal(size=(3, 5)), rng.normal(size=3)
    folded, offset = whitening.folded(weight, bias)
    np.testing.assert_allclose(features @ folded.T + offset, whitening(features) @ weight.T + bias, atol=1e-4)


def random_lite0(seed: int) -> dict:
    """Weights that keep a signal's size, each channel of a depthwise filter alone (He et al., 2015)."""
    rng = np.random.default_rng(seed)
    shapes = {name: shape for name, shape in lite0_shapes(1).items() if name.startswith("features.")}
    return {name: np.float32(rng.normal(size=shape) * np.sqrt(2.0 / np.prod(shape[1:]))) for name, shape in shapes.items()}


def test_a_trunk_whose_features_are_signed_hands_them_on_as_they_are() -> None:
    """Behind its last block nothing is rectified, and the native classifier is: both signs come through."""
    trunk = random_lite0(1)
    images = np.random.default_rng(0).integers(0, 255, (2, VIEW, VIEW, 3), np.uint8)
    found = FrozenTrunk(trunk, 1, "sv_lite")(images)
    mean, std = image_scale("sv_lite")
    x = (images.astype(np.float32) / np.float32(255.0) - np.float32(mean)) / np.float32(std)
    layers = Lite0Trunk()
    layers.load_state_dict({name.removeprefix("features."): torch.from_numpy(value) for name, value in trunk.items()})
    with torch.no_grad():
        wanted = layers(torch.from_numpy(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).reshape(2, 49, 112).numpy()
    assert wanted.min() < 0.0 < wanted.max()
    # Float32 sums of up to 672 terms through 33 layers, in another order.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_channels_that_a_trunk_does_not_have_are_refused() -> None:
    with pytest.raises(AirworthyError, match="gives 112 of a cell"):
        VisuomotorOptions(features="efficientnet_lite0", channels=128)
    with pytest.raises(AirworthyError, match="stay as they are"):
        VisuomotorOptions(features="trained:efficientnet_lite0")
    assert VisuomotorOptions(features="trained").trunk == "random"
    assert VisuomotorOptions(features="trained:own").trunk == "own"


def test_convolutions_learn_with_the_heads_and_fly_as_they_learnt() -> None:
    """What is asked for hangs on whether an image is bright above: random convolutions are changed by learning it."""
    rng = np.random.default_rng(6)
    images = rng.integers(0, 255, (32, VIEW, VIEW, 3), np.uint8)
    bright = np.arange(32) % 2 == 0
    images[bright, :56] = 255
    trunk = backbone_weights("random", 3)
    whitening = Whitening.of(FrozenTrunk(trunk, 1)(images), CHANNELS)
    pairs = drawn_pairs(32, images[:, None], rng)
    pairs = replace(pairs, command=np.repeat(np.where(bright, 1.0, -1.0)[:, None], 4, 1).astype(np.float32))
    latent = rng.normal(size=(32, 8)).astype(np.float32)
    names = ("state", "objective", "command", "position")

    def learnt() -> Sight:
        heads, sight = Heads(CHANNELS, 0), Sight(trunk, whitening, 1, lambda images, seed: images, half=False)
        heads.scale_by({**{name: getattr(pairs, name) for name in names}, "latent": latent})
        learn_heads(heads, pairs, latent, HeadLearning(minibatches=12, batch=16, dropout=0.0), (0,), sight=sight)
        return sight

    sight, again = learnt(), learnt()
    tensors = sight.tensors()
    assert tensors.keys() == trunk.keys()
    assert all(np.array_equal(value, again.tensors()[name]) for name, value in tensors.items())
    assert all((tensors[name] != trunk[name]).any() for name in trunk if name.endswith("weight"))
    # What flies reads images natively by the tensors that were learnt.
    with torch.no_grad():
        shown = sight(torch.from_numpy(images), rng)
    flown = whitening(FrozenTrunk(tensors, 1)(images))
    np.testing.assert_allclose(shown.numpy(), flown, rtol=0, atol=1e-4 * np.abs(flown).max())


def test_images_that_are_learnt_from_are_changed_for_one_look_in_two() -> None:
    images = torch.full((400, VIEW, VIEW, 3), 100, dtype=torch.uint8)[:, :17, :17]
    counted = []

    def changed(some: np.ndarray, seed: tuple[int, ...]) -> np.ndarray:
        counted.append(len(some))
        return some

    sight = Sight(backbone_weights("random", 3), Whitening(np.zeros(512), np.eye(CHANNELS, 512)), 2, changed, half=False)
    with torch.no_grad():
        sight(images, np.random.default_rng(0))
    # 400 draws of one half, 4 deviations.
    assert 160 <= counted[0] <= 240


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sv_grid", "sv_lite"])
def test_what_was_learnt_is_what_flies(name: str) -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 255, (48, VIEW, VIEW, 3), np.uint8)
    trunk = backbone_weights("random", 3) if name == "sv_grid" else random_lite0(3)
    see = FrozenTrunk(trunk, 1, name)
    whitening = Whitening.of(see(images), CHANNELS)
    pairs = drawn_pairs(48, see.whitened(images, whitening)[:, None], rng)
    _, shipped = read_policy(shipped_policy("hall"))
    history = {key: value for key, value in shipped.items() if key.startswith("history.")}
    mean, std = image_scale(name)
    contract = PolicyContract(name, PolicyImage.of_side(VIEW), image_mean=mean, image_std=std)
    heads = Heads(CHANNELS, 0, name)
    tensors = policy_tensors(trunk, whitening, heads, history)
    latent = SvNetwork(contract, tensors, threads=1)._body(pairs.history)
    heads.scale_by(
        {
            "state": pairs.state,
            "objective": pairs.objective,
            "latent": latent,
            "command": pairs.command,
            "position": pairs.position,
        }
    )
    how = HeadLearning(minibatches=400, batch=32, dropout=0.0)
    before = np.mean((predicted(heads, pairs, latent) - pairs.command) ** 2)
    learn_heads(heads, pairs, latent, how, (0,))
    told = predicted(heads, pairs, latent)
    assert np.mean((told - pairs.command) ** 2) < 0.5 * before
    flown = SvNetwork(contract, policy_tensors(trunk, whitening, heads, history), threads=1)
    decided = flown(Reading(pairs.state, pairs.objective, pairs.history, images)).command
    # Features were kept in half precision: 11 bits of mantissa, of numbers of size 1.
    np.testing.assert_allclose(decided, told, atol=2e-2)
    again = Heads(CHANNELS, 0, name)
    again.scale_by(
        {
            "state": pairs.state,
            "objective": pairs.objective,
            "latent": latent,
            "command": pairs.command,
            "position": pairs.position,
        }
    )
    learn_heads(again, pairs, latent, how, (0,))
    assert all(torch.equal(a, b) for a, b in zip(heads.parameters(), again.parameters(), strict=True))


@pytest.mark.slow
def test_heads_learn_to_tell_where_they_are_and_a_policy_does_not_carry_it() -> None:
    """Position is a linear map of what is seen: asked for it, the features that commands are made of hold it."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(256, 1, 36, CHANNELS)).astype(np.float16)
    pairs = drawn_pairs(256, features, rng)
    pairs = replace(pairs, position=5.0 + 2.0 * features[:, 0, :3, 1].astype(np.float32))
    latent = rng.normal(size=(256, 8)).astype(np.float32)
    heads = Heads(CHANNELS, 0)
    names = ("state", "objective", "command", "position")
    heads.scale_by({**{name: getattr(pairs, name) for name in names}, "latent": latent})

    def error() -> float:
        shown = torch.from_numpy(features[:, 0]).float()
        given = (heads.scaled(name, torch.from_numpy(values)) for name, values in (
            ("state", pairs.state), ("objective", pairs.objective), ("latent", latent)))  # fmt: skip
        with torch.no_grad():
            told = heads(shown, *given, None)[1].numpy()
        # In metres: the spread of what is told is 2.
        return float(np.sqrt(np.mean((told * pairs.position.std(axis=0) + pairs.position.mean(axis=0) - pairs.position) ** 2)))

    before = error()
    learn_heads(heads, pairs, latent, HeadLearning(minibatches=300, batch=64, dropout=0.0), (0,))
    assert before > 1.5
    assert error() < 0.5
    _, shipped = read_policy(shipped_policy("hall"))
    history = {key: value for key, value in shipped.items() if key.startswith("history.")}
    whitening = Whitening(np.zeros(512), np.eye(CHANNELS, 512))
    tensors = policy_tensors(backbone_weights("random", 0), whitening, heads, history)
    assert not [name for name in tensors if "position" in name]


def test_looks_depend_on_their_seed_alone_and_nothing_is_nothing() -> None:
    images = np.random.default_rng(4).integers(0, 255, (6, 32, 32, 3), np.uint8)
    first, again, other = (augmented(images, Augmentation(), (seed,)) for seed in (1, 1, 2))
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(augmented(images, NOTHING, (1,)), images)


def test_motion_blur_is_along_rows_or_along_columns() -> None:
    """A point becomes a line of five pixels, a fifth as bright; half of the lines lie, and half stand."""
    images = np.zeros((64, 15, 15, 3), np.uint8)
    images[:, 7, 7] = 255
    looks = augmented(images, replace(NOTHING, blur=1.0), (3,))
    lying, standing = np.zeros((15, 15, 3), np.uint8), np.zeros((15, 15, 3), np.uint8)
    lying[7, 5:10] = standing[5:10, 7] = 51
    kinds = ["lies" if (look == lying).all() else "stands" if (look == standing).all() else "neither" for look in looks]
    assert set(kinds) == {"lies", "stands"}
    # Of 64 draws of one half, 4 deviations.
    assert 16 <= kinds.count("lies") <= 48
    # An edge that lies is smeared by what stands alone, and nothing darkens towards the border.
    images[:, :7], images[:, 7:] = 0, 200
    smeared = (augmented(images, replace(NOTHING, blur=1.0), (3,)) != images).any(axis=(1, 2, 3)).tolist()
    assert smeared == [kind == "stands" for kind in kinds]
    images[:] = 200
    np.testing.assert_array_equal(augmented(images, replace(NOTHING, blur=1.0), (3,)), images)
    sharp = augmented(np.random.default_rng(0).integers(0, 255, (200, 8, 8, 3), np.uint8), replace(NOTHING, blur=0.25), (5,))
    blurred = (sharp != np.random.default_rng(0).integers(0, 255, (200, 8, 8, 3), np.uint8)).any(axis=(1, 2, 3))
    # A quarter of 200, 4 deviations.
    assert 26 <= blurred.sum() <= 74


def test_noise_is_normal_with_a_deviation_of_each_looks_own() -> None:
    most = 20.0
    images = np.full((256, 32, 32, 3), 128, np.uint8)
    off = augmented(images, replace(NOTHING, noise=most), (7,)).astype(float) - 128.0
    deviation = off.std(axis=(1, 2, 3))
    # Strengths are uniform up to the most: the mean square is a third of its square, within 6 % for 256 looks; 3.6 deviations.
    assert np.mean(deviation**2) == pytest.approx(most**2 / 3.0, rel=0.2)
    # 3,072 numbers of a look: its own deviation is known within 1.3 %.
    assert 0.9 * most < deviation.max() < 1.05 * most
    assert deviation.min() < 0.1 * most
    assert np.abs(off.mean(axis=(1, 2, 3))).max() < 4.5 * most / np.sqrt(off[0].size)
    loud = off[deviation.argmax()]
    # Of a normal distribution 68.3 % lie within a deviation; of a uniform one 57.7 would.
    assert np.mean(np.abs(loud) < deviation.max()) == pytest.approx(0.683, abs=0.04)
    # Pixels are drawn each for itself: those beside one another know nothing of each other.
    assert abs(np.corrcoef(loud[:, 1:].ravel(), loud[:, :-1].ravel())[0, 1]) < 0.08


def test_noise_on_black_and_white_stays_black_and_white() -> None:
    """Counts end at 0 and 255: what noise pushes past them does not come back at the other end."""
    for value, far in ((0, 128), (255, 128)):
        noisy = augmented(np.full((16, 16, 16, 3), value, np.uint8), replace(NOTHING, noise=10.0), (9,))
        assert (noisy != value).any()
        assert (np.abs(noisy.astype(int) - value) < far).all()


def row(condition: str, successes: int) -> dict:
    ended = [] if successes == 20 else ["off course: far"]
    about = {"course": "round", "condition": condition, "family": "rigid", "flights": 20}
    return {**about, "successes": successes, "touched": 0, "tracking_error_m": 0.1, "ended": ended}


def test_a_verdict_stands_on_its_worst_condition() -> None:
    fit, why = verdict_of([row("baseline", 20), row("drones", 19)])
    assert fit
    assert "39 of 40" in why
    fit, why = verdict_of([row("baseline", 20), row("drones", 18)])
    assert not fit
    assert "2 of 20 flights failed under 'drones, rigid'" in why


def test_a_flight_that_touched_something_counts_against_fitness() -> None:
    fit, why = verdict_of([row("baseline", 20), {**row("wind", 20), "touched": 1}])
    assert fit
    assert "39 of 40 flights succeeded without a touch" in why
    assert "at least 19 of 20" in why
    assert "1 more came to the end and touched something" in why
    fit, why = verdict_of([row("baseline", 20), {**row("wind", 20), "touched": 2, "ended": ["success recovered: the crate"]}])
    assert not fit
    assert "2 of 20 touched something under 'wind, rigid'" in why
    assert "the crate" in why
    fit, why = verdict_of([{**row("wind", 17), "touched": 2}])
    assert "3 of 20 flights failed and 2 of 20 touched something" in why


def test_a_verdict_by_few_flights_says_so() -> None:
    few = {**row("baseline", 20), "flights": 4, "successes": 4, "ended": []}
    assert verdict_of([few])[1].startswith("yes, as far as so few flights tell (4), since 4 of 4")
    # Sixteen of sixteen: Wilson's lower end is 80.6 %.
    assert verdict_of([{**few, "flights": 16, "successes": 16}])[1].startswith("yes, since 16 of 16")


def test_options_that_are_none_are_refused() -> None:
    with pytest.raises(AirworthyError, match="judged"):
        VisuomotorOptions(seed=JUDGED_SEED)
    with pytest.raises(AirworthyError, match="even"):
        VisuomotorOptions(flights=3)
    assert [VisuomotorOptions(minutes=m).round_flights for m in (5.0, 8.0, 60.0)] == [8, 16, 16]
    assert VisuomotorOptions(minutes=5.0, flights=32).round_flights == 32
    # A minute more is 1,200 pairs more, up to 24,000.
    assert VisuomotorOptions(minutes=5.0).pairs == 6000
    assert VisuomotorOptions(minutes=100.0).pairs == 24_000


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(AirworthyError, match="--rounds"):
        VisuomotorOptions(rounds=2, good_m=0.2)
    with pytest.raises(AirworthyError, match="--looks 1"):
        VisuomotorOptions(looks=1, augmentation=Augmentation(light=0.1))
    with pytest.raises(AirworthyError, match="hundredth"):
        VisuomotorOptions(delay=0.004)


def test_flights_without_figures_count_in_no_mean() -> None:
    assert mean_of_finite([1.0, None, float("nan"), 3.0]) == 2.0
    assert mean_of_finite([None, float("nan")]) is None


@pytest.mark.parametrize(
    ("pairs", "data", "features", "flights", "round_s"), [(11_200, 80.2, 37.5, 16, 62.0), (5_600, 41.7, 27.2, 8, None)]
)
def test_times_are_guessed_from_what_imitation_took(
    pairs: int, data: float, features: float, flights: int, round_s: float | None
) -> None:
    """As measured in the hall with ten and with five minutes, where a flight took 2.2 to 2.6 s, and a round of 16 61 s."""
    row = {"pairs": pairs, "seconds": {"data": data, "features": features, "heads": 24.9}}
    each, took = guessed_times(row, flights, 300.0)
    assert each == pytest.approx(1.2 * 300.0 * data / pairs)
    assert 2.2 < each < 3.0
    assert took == pytest.approx(flights * (each + 300.0 * features / pairs) + 12.45)
    if round_s is not None:
        assert took == pytest.approx(round_s, rel=0.2)
    else:
        # Five minutes hold a round and 40 flights of judgement, behind the 99 s that imitation took.
        assert 99.0 + took + 40.0 * each < 300.0
