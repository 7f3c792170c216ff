"""Objects, furniture and surfaces of the generated rooms."""
