"""What is checked of cases, a module for each subject."""
