"""Training of any learning task by reward to a folder whose policy flies: `airworthy train TASK`."""
