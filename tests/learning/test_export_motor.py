"""Motor policies elsewhere: the same actions through onnxruntime and from a C compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.pilots.motor_cases import contract, learnt, weights
from tests.pilots.svnet_cases import contract as svnet_contract
from tests.pilots.svnet_cases import weights as svnet_weights

from airworthy.cli.main import main
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning import export_policy
from airworthy.learning.gradient import network_action, write_motor_policy
from airworthy.pilots import MotorPolicy, motor_observation, read_motor_policy
from airworthy.pilots.motor_policy.contract import write_motor_folder
from airworthy.pilots.network_files import parse_contract
from airworthy.pilots.svnet.contract import CONTRACT_KEY, write_policy

CC = shutil.which("cc")
compiled = pytest.mark.skipif(CC is None, reason="there is no C compiler")
PARITY = 1e-6
"""Largest absolute difference of an action that is allowed."""
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_motor_policy(tmp_path_factory.mktemp("learnt"), learnt())


def observations(count: int, width: int = 18, seed: int = 0) -> ArrayF32:
    """As flights have them: errors of up to metres, rotations that are some."""
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=(count, 4))
    p, v, rate = (rng.normal(size=(count, 3)) * size for size in (1.0, 1.0, 3.0))
    attitude = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    own = motor_observation(p, v, attitude, rate, rng.uniform(-3.0, 3.0, count))
    past = rng.uniform(-1.0, 1.0, (count, width - 18))
    return np.concatenate([own, past], axis=1).astype(np.float32)


def run_c(folder: Path, source: str, given: Array, width: int) -> ArrayF32:
    """What a program prints as float32 (n, width) that reads `given` as float32."""
    (folder / "main.c").write_text(f"#include <stdio.h>\n{source}")
    subprocess.run([str(CC), *FLAGS, "-O2", "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    done = subprocess.run(
        ["./main"], cwd=folder, check=True, input=np.ascontiguousarray(given, "<f4").tobytes(), capture_output=True
    )
    return np.frombuffer(done.stdout, "<f4").reshape(-1, width)


ACT = """#include "{name}.h"
int main(void)
{{
    {name}_state state;
    float observation[18], action[4];
    {name}_reset(&state);
    while (fread(observation, sizeof(float), 18, stdin) == 18) {{
        {name}_act(&state, observation, action);
        fwrite(action, sizeof(float), 4, stdout);
    }}
    return 0;
}}
"""


def twin(policy: MotorPolicy, observed: Array) -> Array:
    return network_action([np.asarray(w, float) for w in policy.weights], np.asarray(observed, float))


# ---- C ---------------------------------------------------------------------------------------------------------------


@compiled
def test_a_learnt_policy_in_c_acts_as_here(folder: Path, tmp_path: Path) -> None:
    export_policy(folder, tmp_path / "policy.h")
    seen = observations(1000)
    policy = read_motor_policy(folder)
    acted = run_c(tmp_path, ACT.format(name="policy"), seen, 4)
    assert acted.shape == (1000, 4)
    np.testing.assert_allclose(acted, policy.action(seen), rtol=0.0, atol=PARITY)
    np.testing.assert_allclose(acted, twin(policy, seen), rtol=0.0, atol=PARITY)


@compiled
@pytest.mark.parametrize("hidden", [(24,), (16, 24), (8, 16, 12)])
def test_what_it_remembers_in_c(hidden: tuple[int, ...], tmp_path: Path) -> None:
    """Past actions, the newest first, after those of hover: over a flight of 50 decisions."""
    given = contract(history=3, hidden=hidden)
    write_motor_folder(tmp_path, given, weights(given))
    export_policy(tmp_path, tmp_path / "with_past_3.h")
    policy, seen = read_motor_policy(tmp_path), observations(50)
    past, wanted = np.tile(given.hover, (1, 3)).astype(np.float32), []
    for row in seen:
        wanted.append(policy.action(np.concatenate([row[None], past], axis=1)))
        past = np.concatenate([wanted[-1], past[:, :8]], axis=1)
    acted = run_c(tmp_path, ACT.format(name="with_past_3"), seen, 4)
    np.testing.assert_allclose(acted, np.concatenate(wanted), rtol=0.0, atol=PARITY)


@compiled
@pytest.mark.parametrize("law", ["state", "square"])
def test_what_it_sees_and_commands_in_c(law: str, tmp_path: Path) -> None:
    """Observation and rotor states; and two policies in one program."""
    for name, state in (("one", "speed"), ("other", "thrust")):
        given = contract(motor_state=state, action=law, limits=tuple((5.0 + 10.0 * k, 800.0) for k in range(4)))
        write_motor_folder(tmp_path / name, given, weights(given))
        export_policy(tmp_path / name, tmp_path / f"{name}.h")
    source = """#include "one.h"
#include "other.h"
int main(void)
{
    float x[18], observation[18], rotor[4];
    other_state state;
    other_reset(&state);
    other_act(&state, other_w0, rotor);
    while (fread(x, sizeof(float), 18, stdin) == 18) {
        one_observe(x, x + 3, x + 6, x + 10, x[13], observation);
        one_command(x + 14, rotor);
        fwrite(observation, sizeof(float), 18, stdout);
        fwrite(rotor, sizeof(float), 4, stdout);
    }
    return 0;
}
"""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (100, 18))
    x[:, 6:10] /= np.linalg.norm(x[:, 6:10], axis=1, keepdims=True)
    x[:, 13] *= 3.0
    found = run_c(tmp_path, source, x, 22)
    wanted = motor_observation(x[:, :3], x[:, 3:6], x[:, 6:10], x[:, 10:13], x[:, 13])
    np.testing.assert_allclose(found[:, :18], wanted, rtol=0.0, atol=PARITY)
    rotors = read_motor_policy(tmp_path / "one").command(x[:, 14:])
    np.testing.assert_allclose(found[:, 18:], rotors, rtol=0.0, atol=900.0 * PARITY)  # of a range of up to 800 rad/s


@compiled
def test_the_documents_c_compiles(folder: Path, tmp_path: Path) -> None:
    export_policy(folder, tmp_path / "policy.h")
    page = Path(__file__).parents[2] / "docs" / "concepts" / "motor_policy.md"
    block = page.read_text(encoding="utf-8").split("```c\n")[1].split("```")[0]
    (tmp_path / "main.c").write_text(block)
    done = subprocess.run([str(CC), *FLAGS, "-c", "main.c", "-o", "main.o"], cwd=tmp_path, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_stands_in_the_header(folder: Path, tmp_path: Path) -> None:
    """Every weight to the bit; order, units and frames in words; and nothing that a stranger's text could add."""
    text = export_policy(folder, tmp_path / "policy.h").read_text()
    policy = read_motor_policy(folder)
    for k, array in enumerate(policy.weights):
        body = text.split(f" policy_{'wb'[k % 2]}{k // 2}[{array.size}] = {{")[1].split("}")[0]
        written = np.array([np.float32(word.strip().rstrip("f")) for word in body.split(",")])
        np.testing.assert_array_equal(written, array.ravel())
    assert "[3..5] 0.5 * velocity_error [m/s], target frame" in text
    assert "100 times per second" in text
    assert "@" not in text
    evil = contract(vehicle='x */ int main(void) { return system("rm"); } /*\n#error')
    write_motor_folder(tmp_path / "evil", evil, weights(evil))
    said = export_policy(tmp_path / "evil", tmp_path / "evil.h").read_text()
    assert said.splitlines()[0].startswith("/* A motor policy of the vehicle x ?? int main?void?")
    assert "#error" not in said
    assert said.count("*/") == said.count("/*")


def test_the_header_is_sixty_lines_of_c(folder: Path, tmp_path: Path) -> None:
    """Beside its numbers and comments, as the documents say (acceptance 17 of learning by reward)."""
    text = re.sub(r"/\*.*?\*/", "", export_policy(folder, tmp_path / "policy.h").read_text(), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"static const float|    -?\d", line)]
    assert 40 < len(lines) <= 60


# ---- ONNX ------------------------------------------------------------------------------------------------------------


def test_onnx_acts_as_here(folder: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    pytest.importorskip("onnx", reason="the extra 'export' is not installed")
    given = contract(history=2)
    write_motor_folder(tmp_path / "past", given, weights(given))
    for where in (folder, tmp_path / "past"):
        path = export_policy(where, tmp_path / f"{where.name}.onnx")
        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
        policy = read_motor_policy(where)
        for count in (1, 1000):
            seen = observations(count, policy.contract.observed)
            (acted,) = session.run(["action"], {"observation": seen})
            np.testing.assert_allclose(acted, policy.action(seen), rtol=0.0, atol=PARITY)
        text = session.get_modelmeta().custom_metadata_map[CONTRACT_KEY]
        assert parse_contract(text, "model")["kind"] == "motor_policy"


# ---- the command and mistakes ----------------------------------------------------------------------------------------


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(folder), "--out", str(tmp_path / "fly_it.h")]) == 0
    assert capsys.readouterr().out.startswith(f"Header: {tmp_path / 'fly_it.h'} (")
    assert main(["export", str(folder), "--out", str(tmp_path / "2fast.h")]) == 2
    assert "cannot begin names of C" in capsys.readouterr().err


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"ends neither in '\.onnx' nor in '\.h'"):
        export_policy(folder, tmp_path / "policy.c")
    write_policy(tmp_path / "svnet", svnet_contract("hp_net"), svnet_weights("hp_net"))
    with pytest.raises(AirworthyError, match="cannot begin names of C"):
        export_policy(tmp_path / "svnet", tmp_path / "2fast.h")
    with pytest.raises(AirworthyError, match=r"'\.onnx', '\.h' or '\.py'"):
        export_policy(tmp_path / "svnet", tmp_path / "policy.pt")
    for name in ("a b", "a-b", "x" * 41, "_a", "é"):
        with pytest.raises(AirworthyError, match="cannot begin names of C"):
            export_policy(folder, tmp_path / f"{name}.h")
    with pytest.raises(AssetError, match="does not hold a policy"):
        export_policy(tmp_path, tmp_path / "policy.onnx")
    copy = Path(shutil.copytree(folder, tmp_path / "damaged"))
    (copy / "weights.safetensors").write_bytes(b"other")
    with pytest.raises(AssetError, match="changed or damaged"):
        export_policy(copy, tmp_path / "policy.h")
    assert not list(tmp_path.glob("policy.*"))
