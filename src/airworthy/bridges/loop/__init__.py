"""Vehicle in the loop: poses of a real vehicle come from outside, what its cameras would see here goes out (spec/connect 9)."""
