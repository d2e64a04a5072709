"""The tested model's side: its predictions on cases, and their refinement."""
