"""The card of an audited judge as text and pages."""
