"""SAC and TD3 for small networks with everything in lanes: environments, replay and updates in one launch."""

from airworthy.learning.off_policy.options import OffPolicyOptions, SacOptions, Td3Options
from airworthy.learning.off_policy.trainer import OffPolicy, OffPolicyUpdate

__all__ = ["OffPolicy", "OffPolicyOptions", "OffPolicyUpdate", "SacOptions", "Td3Options"]
