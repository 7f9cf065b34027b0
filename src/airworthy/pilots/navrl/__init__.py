"""NavRL: a velocity policy over map rays with a safety shield, deployed without torch."""

from airworthy.pilots.navrl.network import Network
from airworthy.pilots.navrl.planner import MAP_SETTINGS, NavRL, NavRLSettings
from airworthy.pilots.navrl.weights import convert_weights, load_network, weights_folder

__all__ = ["MAP_SETTINGS", "NavRL", "NavRLSettings", "Network", "convert_weights", "load_network", "weights_folder"]
