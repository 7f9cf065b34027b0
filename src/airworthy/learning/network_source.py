"""The native text of small networks, shared by the kernels that learn."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["network_source"]

# Numerator and denominator in x^2 of tanh(x) / x, fitted here by iterated least squares (Lawson) to the least largest relative
# error on [0, 9], both times 1.4085387: float32 rounds them most kindly then.
_TANH_P = (1.4085386991500854, 0.19877488911151886, 0.0062584299594163895, 6.017472333041951e-05, 1.6026402249735838e-07)
_TANH_P_LAST = 5.409376765963536e-11
_TANH_Q = (1.4085386991500854, 0.6682878136634827, 0.041215866804122925, 0.0007101322407834232, 3.7265433547872817e-06)
_TANH_Q_LAST = 4.294127275983328e-09


def network_source() -> str:
    """Return the native struct `Net`: tanh, products and layers in lanes."""
    text = files("airworthy.learning").joinpath("native", "network.h").read_text()
    for name, values in (("P", (*_TANH_P, _TANH_P_LAST)), ("Q", (*_TANH_Q, _TANH_Q_LAST))):
        for k, value in enumerate(values):
            text = text.replace(f"TANH_{name}{k}", f"{value!r}f")
    return text
