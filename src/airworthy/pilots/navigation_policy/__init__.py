"""A learnt policy that flies through rooms to a goal: sees a small depth image, commands speed, climb and yaw rate."""
