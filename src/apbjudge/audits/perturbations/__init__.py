"""Makes variants of known truth from plans that are assumed correct."""
