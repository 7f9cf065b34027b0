"""`python -m airworthy` is the command `airworthy`."""

import sys

if __name__ == "__main__":
    try:
        # Within: whoever presses Ctrl-C while it loads gets a line, and no traceback of an import.
        from airworthy.cli.main import entry

        entry()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
