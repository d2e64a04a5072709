"""Checks of cases, a module for each subject."""
