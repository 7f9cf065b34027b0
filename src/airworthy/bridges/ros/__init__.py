"""ROS 2 without ROS: types made at run time, messages as CDR bytes, over DDS or zenoh."""
