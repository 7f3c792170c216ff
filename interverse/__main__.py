"""`python -m interverse VERB` is `interverse VERB`."""

from __future__ import annotations

import sys

from interverse.cli import main

if __name__ == "__main__":
    sys.exit(main())
