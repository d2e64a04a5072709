#!/bin/bash
# Puts the parts together, once all of them have ended well.
set -euo pipefail
exec apbjudge shards merge "$1"/part-* --out "$1/whole"
