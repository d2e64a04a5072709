"""Makes variants of known truth from plans that are taken as correct."""
