"""`python -m airworthy` is the command `airworthy`."""

from airworthy.cli.main import entry

if __name__ == "__main__":
    entry()
