"""Places: the scene record, readers and writers of meshes, generators, actors and lights."""
