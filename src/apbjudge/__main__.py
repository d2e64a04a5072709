"""``python -m apbjudge``."""

from .cli.main import main

main()
