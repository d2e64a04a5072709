"""Reports: from judgements to columns, metrics and text."""
