"""Arrays in, small named statistics out; this room has never heard of an index."""
