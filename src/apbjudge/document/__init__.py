"""Printed results: headings, notes, tables and figures, and their text and pages."""
