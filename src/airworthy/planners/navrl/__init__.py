"""NavRL: a velocity policy over map rays with a safety shield, deployed without torch."""

from airworthy.planners.navrl.network import Network, convert_weights, load_network, weights_folder
from airworthy.planners.navrl.planner import MAP_SETTINGS, NavRL, NavRLSettings

__all__ = ["MAP_SETTINGS", "NavRL", "NavRLSettings", "Network", "convert_weights", "load_network", "weights_folder"]
