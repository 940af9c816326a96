"""Runs the command line: `python -m delta_engine`."""

from delta_engine.cli.app import main

if __name__ == "__main__":
    main()
