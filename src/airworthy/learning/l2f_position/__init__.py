"""The task l2f_position trained like for like: by SAC, by TD3, and by the gradient of flights."""
