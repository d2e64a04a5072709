"""What is printed: headings, notes, tables and figures, and how they become text or pages."""
