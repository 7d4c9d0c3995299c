"""The entry point of `agentexp` and `python -m agentexp`."""

import sys

from agentexp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
