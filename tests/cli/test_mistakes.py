"""What people get wrong, and what they are told: one sentence that mends it, exit code 2, nothing on standard output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airworthy.cli.main import main

Output = pytest.CaptureFixture[str]

COMMONEST = {
    "flly": "Unknown command 'flly'. Closest: 'fly', 'film'. Known: [...]. See airworthy --help.",
    "fly --vehicle carll": (
        "Unknown vehicle 'carll'. Closest: 'carl'. Known: [...]. Run 'airworthy vehicles' to list them;"
        " a file of your own ends in .toml (docs/howto/vehicles.md)."
    ),
    "fly --vehicle mine.toml": "There is no file 'mine.toml'.",
    "fly --course robustnes": (
        "Unknown course 'robustnes'. Closest: 'robustness'. Known: [...]. A course of your own is given as the"
        " path of its JSON file."
    ),
    "fly --pilot geometrik": (
        "Unknown pilot 'geometrik'. Closest: 'geometric'. Known: [...]. A trained policy is svnet:FOLDER, policy:FOLDER,"
        " avoid:FOLDER or navigation:FOLDER, a class of your own FILE.py:CLASS."
    ),
    "fly --waypoints 0,0,1 5,5": "Waypoint '5,5' is not three numbers; write it as x,y,z in metres, e.g. 1,0,1.5.",
    "fly --envs 0": "--envs is 0; expected 1 to 1000000.",
    "fly --randomize mas=0.1": (
        "Unknown quantity to randomize 'mas'. Closest: 'mass'. Known: [...]. Write for example --randomize mass=0.1 wind=2,"
        " or --randomize identified."
    ),
    "fly --imu bmi88": (
        "Unknown inertial sensor 'bmi88'. Closest: 'bmi088', 'bmi085', 'bmi088_levelled'. Known: [...]. Devices are listed in"
        " sensors/imu_devices.toml."
    ),
    "replay nowhere": "There is no file 'nowhere/meta.json'. There is no folder 'nowhere' either.",
}
"""The ten commonest, word for word; the lists of known names are cut, since they grow."""

MORE = [
    ("fly --course hover --device tpu", "Unknown device 'tpu'."),
    ("fly --course hover --device cuda:99", "Unknown device 'cuda:99'."),
    ("fly --course hover --waypoints 0,0,1 1,1,1", "Both a course and waypoints are given; name one of them."),
    ("fly --waypoints 0,0,1", "Waypoints must be 2 or more points"),
    ("fly --waypoints 0,0,1 0,0,1", "Waypoints 0 and 1 are the same point: remove one."),
    (
        "fly --pilot ego --scene forest --start 1 2 1.5 --goal 1 2 1.5",
        "Start and goal are the same point, (1, 2, 1.5) m: give another --start or --goal.",
    ),
    ("fly --waypoints nan,0,1 1,1,1", "Waypoint 'nan,0,1' is not three numbers"),
    ("fly --waypoints 0,0,1 1e300,1,1", "Waypoint '1e300,1,1' is in metres, and more than 100 km away."),
    ("fly --waypoints 0,0,1 3,0,1 --laps 3", "This course ends 3 m from where it begins, so it cannot be flown for 3 laps."),
    ("fly --course line --laps 2", "This course ends 4 m from where it begins, so it cannot be flown for 2 laps."),
    ("fly --course line --laps 0", "--laps is 0; expected 1 to 1000."),
    ("fly --course /", "'/' is a folder; a file was expected."),
    ("fly --vehicle", "No vehicle is named; `airworthy vehicles` lists them."),
    ("fly --vehicle carl lmf2", "2 vehicles are named for 1 flights: set --envs to as many or more."),
    ("fly --vehicle ./carl", "There is no file './carl'."),
    ("fly --gains leee", "Unknown gain set 'leee'. Closest: 'lee'."),
    ("fly --dynamics semi_kinematic --pilot mellinger", "Pilot 'mellinger' does not fit semi_kinematic dynamics;"),
    ("fly --dynamics semi_kinematic --imu bmi088", "--imu bmi088 changes nothing in semi-kinematic dynamics"),
    ("fly --dynamics semi_kinematic --wind 1 0 0", "--wind 1 0 0 changes nothing in semi-kinematic dynamics"),
    ("fly --control-rate 1000", "control_rate is 1000.0 Hz; expected more than 0 and at most physics_rate (960.0 Hz)."),
    ("fly --course line --envs 1000000", "Recording 1,000,000 flights of 7 s would take "),
    ("fly --randomize mass", "--randomize got 'mass'; write it as mass=NUMBER."),
    ("fly --randomize mass=1.5", "--randomize: mass is 1.5; expected at least 0 and less than 1."),
    ("fly --randomize drag=2", "--randomize: drag is 2; expected 0 to 1."),
    ("fly --randomize wind=nan", "--randomize: wind is nan m/s; expected 0 to 100."),
    ("fly --randomize yaw=9", "--randomize: yaw is 9 rad; expected 0 to 3.14159265359."),
    ("fly --seed -1", "--seed is -1; expected 0 to 2^63 - 1."),
    ("demo --flights 0", "The demo got 0 flights; expected 1 to 10,000."),
    ("demo --device tpu --out x", "Unknown device 'tpu'."),
]

PARSED = [
    ("fly --env 3", "--env"),
    ("fly extra", "extra"),
    ("fly --envs many", "many"),
    ("fly --envs 1.5", "1.5"),
    ("fly --wind 1", "--wind"),
    ("fly --integrator rk5", "rk5"),
    ("fly --slower", "--slower"),
    ("replay", "folder"),
    ("replay a b", "b"),
    ("demo --vehicle carl", "--vehicle"),
]

NUMBERS = ["slower", "speed", "acceleration", "hold", "physics-rate", "control-rate", "record-rate", "turbulence"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def message_of(command: str, capsys: Output) -> str:
    """The sentence that a mistake is answered with."""
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert list(Path().iterdir()) == []
    return captured.err


@pytest.mark.parametrize(("command", "sentence"), COMMONEST.items())
def test_the_ten_commonest(command: str, sentence: str, capsys: Output) -> None:
    assert re.sub(r"Known: [\w, .()]*?\.(?= [A-Z]|\n)", "Known: [...].", message_of(command, capsys)) == f"{sentence}\n"


@pytest.mark.parametrize(("command", "start"), MORE)
def test_others(command: str, start: str, capsys: Output) -> None:
    sentence = message_of(command, capsys)
    assert sentence.startswith(start)
    assert sentence.count("\n") == 1


@pytest.mark.parametrize(("command", "what"), PARSED)
def test_arguments_that_cannot_be_parsed(command: str, what: str, capsys: Output) -> None:
    assert what in message_of(command, capsys)


@pytest.mark.parametrize(
    "command",
    [
        "train hover --out LONG",
        "train hover --seeds 2 --out LONG",
        "train recovery --out LONG",
        "train LONG.py:T",
        "train svnet LONG",
        "train boundary LONG",
        "fly --pilot policy:LONG",
        "fly --pilot svnet:LONG",
        "fly --pilot LONG.py:T --scene forest",
        "fly --sensors LONG.py:T",
        "fly --scene LONG.glb",
        "export LONG --out x.onnx",
        "capture show LONG",
        "view LONG",
    ],
)
def test_a_path_with_a_part_that_no_file_system_takes_is_one_sentence(command: str, capsys: Output) -> None:
    sentence = message_of(command.replace("LONG", "a" * 300), capsys)
    # Which of the two depends on who meets the path first, and on Python's version.
    assert re.search(r"has 30\d bytes; expected at most 255|too long|[Tt]here is no |is no f|No such", sentence), sentence
    assert sentence.count("\n") == 1


_WITH_OUT = [
    "fly", "film x", "races plan lsy_0", "sensors gallery", "demo", "capture marker", "scenes export forest",
    "scenes render forest", "train hover", "train recovery", "train race", "train avoid", "train boundary x",
    "train depth_navigation", "train dce", "train distill --teachers x", "train foundation", "train backbone",
    "train visuomotor --scene forest --course line", "train svnet x", "synthesize", "synthesize gates", "export x",
    "evaluate", "tune", "bench navigation", "bench race", "bench gates",
]  # fmt: skip


@pytest.mark.parametrize("command", _WITH_OUT)
def test_an_empty_out_is_not_the_folder_where_one_stands(command: str, capsys: Output) -> None:
    sentence = message_of(f"{command} --out=", capsys)
    assert re.match(r"Error parsing --out: an empty text is no path; '\.' is the folder you are in\.|--out is ''; ", sentence)
    assert sentence.count("\n") == 1


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e30"])
@pytest.mark.parametrize("option", NUMBERS)
def test_numbers_that_nobody_can_mean(option: str, value: str, capsys: Output) -> None:
    sentence = message_of(f"fly --course line --{option}={value}", capsys)
    assert sentence.startswith(f"--{option} is {float(value):.12g}")
    assert "expected " in sentence


@pytest.mark.parametrize("value", ["nan", "inf", "-101", "1e30"])
def test_winds_that_nobody_can_mean(value: str, capsys: Output) -> None:
    said = message_of(f"fly --course line --wind 0 {value} 0", capsys)
    assert said == f"--wind[1] is {float(value):.12g} m/s; expected -100 to 100.\n"


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("--contact reset", "--contact reset changes nothing without something to meet: name a --scene, or leave it out."),
        ("--video-rate 20", "--video-rate 20 changes nothing without a film: add --record video"),
        ("--video-camera chase", "--video-camera chase changes nothing without a film"),
        ("--video-size 320 240", "--video-size 320 240 changes nothing without a film"),
        ("--record-rate 500", "--record-rate 500 changes nothing beyond --control-rate"),
        ("--rotors x.toml", "--rotors x.toml changes nothing for a vehicle that is no URDF"),
        ("--vehicle x.urdf", "'x.urdf' is a URDF, which names no rotors"),
        (
            "--dynamics semi_kinematic --randomize drag=0.1",
            "--randomize drag=0.1 changes nothing in semi-kinematic dynamics, which have no drag",
        ),
        ("--speed 50", "--speed 50 changes nothing: course 'line' has its own times and reaches 1 m/s"),
        ("--acceleration 50", "--acceleration 50 changes nothing: course 'line' has its own times"),
    ],
)
def test_options_without_effect_are_refused(options: str, start: str, capsys: Output) -> None:
    assert message_of(f"fly --course line {options}", capsys).startswith(start)


_OF_TORCH = "The package 'torch' is installed but cannot be loaded (libtorch.so: cannot open shared object file): mend what"


@pytest.fixture(params=["ImportError", "OSError"])
def broken_torch(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A torch whose library is gone, before any other in the path of modules."""
    place = tmp_path_factory.mktemp("modules")
    (place / "torch.py").write_text(f"raise {request.param}('libtorch.so: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return place


@pytest.mark.parametrize(
    "kind", ["depth_navigation", "lidar_navigation", "dce", "avoid", "hover --trainer ppo", "svnet x", "boundary x"]
)
def test_a_torch_that_cannot_be_loaded_is_told(kind: str, broken_torch: Path, capsys: Output) -> None:
    assert message_of(f"train {kind} --out out", capsys).startswith(_OF_TORCH)


@pytest.mark.parametrize("kind", ["avoid", "depth_navigation"])
def test_it_is_told_in_python_too(kind: str, broken_torch: Path) -> None:
    paths = os.pathsep.join([str(broken_torch), *sys.path])
    code = (
        f"import airworthy as aw\ntry:\n    aw.train({kind!r}, out='out')\nexcept aw.AirworthyError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=broken_torch,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.stdout.startswith(_OF_TORCH), done.stderr
