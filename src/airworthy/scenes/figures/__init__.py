"""People as they are seen: bodies, clothes, heads and hands as smooth closed meshes, posed by joints."""
