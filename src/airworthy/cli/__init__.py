"""The command line: one thin file per command, each with `main(argv) -> exit code`; no logic."""
