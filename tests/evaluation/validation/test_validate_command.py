import pytest

from airworthy.cli.main import main
from airworthy.evaluation.validation.errors import ErrorSamples
from airworthy.evaluation.validation.table import cells


def test_without_data_it_says_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    assert main(["validate", "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert "AIRWORTHY_DATA is unset" in message
    assert "--data DIR" in message
    assert len(message.strip().splitlines()) == 1


def test_a_folder_without_flights_is_said(capsys, tmp_path):
    assert main(["validate", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "holds no folder 'flights'" in capsys.readouterr().err


def test_a_missing_log_is_said(capsys, tmp_path):
    (tmp_path / "flights" / "crazyflie_imrc").mkdir(parents=True)
    assert main(["validate", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    message = capsys.readouterr().err
    assert "There is no file" in message
    assert "brushless_eckart00.npz" in message


def test_cells_are_rms_over_median():
    import numpy as np

    values = np.ones((3, 4, 3)) * np.array([0.001, 0.002, 0.004])[:, None, None]
    shown = cells(ErrorSamples(values))
    assert shown[0] == "2.65/2"  # millimetres
    assert len(shown) == 12


@pytest.mark.slow
def test_the_whole_command(data_dir, tmp_path, capsys):
    import json

    assert (
        main(["validate", "--data", str(data_dir), "--out", str(tmp_path), "--json", "--save-vehicles", str(tmp_path / "v")])
        == 0
    )
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "validation.json").read_text())
    for experiment in printed["experiments"]:
        assert "fitted: below every other set (as published, refitted) in 12 of 12 columns by RMS" in experiment["verdict"]
    assert {p.suffix for p in tmp_path.iterdir() if p.is_file()} == {".json", ".html", ".png"}
    assert len(list((tmp_path / "v").glob("*.toml"))) == 2
