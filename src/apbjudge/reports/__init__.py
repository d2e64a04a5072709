"""Reports: tables, figures and pages from judgements."""
