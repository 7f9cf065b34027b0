"""Navigation by sight, learnt by reward: Aerial Gym's tasks with a depth camera and with a LiDAR."""
