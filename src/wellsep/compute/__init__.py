"""Arrays in, small named statistics out; this room knows nothing about indices."""
