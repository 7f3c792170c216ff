"""Procedural meshes, textures, pictures and room objects; plain NumPy."""
