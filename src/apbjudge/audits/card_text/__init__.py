"""The card of an audited judge: its figures, and how they are shown as text and pages."""
